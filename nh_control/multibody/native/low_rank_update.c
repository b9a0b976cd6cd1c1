/* Springs and dampers between points in Newton's equation: an update of rank three for each, by
 * Woodbury's formula (T26). Changes y of their forces are further unknowns. With G of y by the
 * motion, and W the forces in the rows,
 *
 *     dz0 = -r_z^{-1} r,   Y = r_z^{-1} W^T,   dz = dz0 - Y y,   (1 + G Y) y = G dz0,
 *
 * r_z with the turning of forces that do not change. Derivatives have the forces of dampers by
 * coordinates (force_columns.c), without that turning; that of joints of several rates is as if
 * dampers were springs.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Number of changes y. */
INTERNAL int n_force_rows(const struct tree_model *model, int linearized)
{
    return 3 * (model->n_springs + (linearized ? 0 : model->n_dampers));
}

/* W and G of the springs and, unless for the derivatives (`linearized`), of the dampers; for these
 * also W of the momentum after the step, and G by the start. */
static void load_point_forces(const struct tree_model *model, const struct tree_data *data,
                              int linearized)
{
    for (int i = 0; i < model->n_springs + (linearized ? 0 : model->n_dampers); ++i) {
        const struct point_force *c = model->point_forces + i;
        const int row = 3 * model->nv * i;
        double *before = data->force_rows + row, *z = data->force_by_z + row,
               *q = data->force_by_q + row;
        if (i >= model->n_springs) {
            point_force_rows(model, data, c, UNITS, model->start_fraction * data->h, UNIT, before);
            damper_jacobian(model, data, c, z, q);
            continue;
        }
        v4 K[3];
        spring_stiffness(c, separation(data, c), K);
        point_force_rows(model, data, c, UNITS, 1.0, BEFORE, before);
        point_force_rows(model, data, c, K, -1.0, BY_UNKNOWN, z);
        if (linearized)
            point_force_rows(model, data, c, UNITS, 1.0, AFTER, data->force_rows1 + row);
        if (linearized) point_force_rows(model, data, c, K, -1.0, BY_START, q);
    }
}

/* For a while, the forces of dampers count among the loads that are carried (T7). */
static void add_damper_loads(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        data->bodies[i].saved[0] = data->bodies[i].gravity_torque;
        data->bodies[i].saved[1] = data->bodies[i].spring_force;
    }
    for (int i = model->n_springs; i < model->n_springs + model->n_dampers; ++i) {
        const struct point_force *c = model->point_forces + i;
        const v4 force = point_force_on_a(model, data, c);
        for (int end = 0; end < 2; ++end) {
            int body = end ? c->b : c->a;
            v4 lever = world_lever(data, body, end ? c->at_b : c->at_a);
            for (; body >= 0; body = model->joints[body].parent) {
                struct body *b = data->bodies + body;
                b->gravity_torque += cross(lever, end ? -force : force);
                b->spring_force += end ? -force : force;
                lever += b->p;
            }
        }
    }
}

/* The loads without the forces of dampers. */
static void remove_damper_loads(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        data->bodies[i].gravity_torque = data->bodies[i].saved[0];
        data->bodies[i].spring_force = data->bodies[i].saved[1];
    }
}

/* Factors of the joints, Y, and the factors of 1 + G Y; 1 if they are singular. */
INTERNAL int factor_with_forces(const struct tree_model *model, const struct tree_data *data,
                                enum equation equation)
{
    const int mass = equation == MASS_MATRIX, linearized = equation == LINEARIZATION;
    const int n = n_force_rows(model, linearized), nv = model->nv;
    const int damped = model->n_dampers && !linearized && !mass;
    if (damped) add_damper_loads(model, data);
    const int singular = factor_joints(model, data, equation);
    if (damped) remove_damper_loads(model, data);
    if (singular) return 1;
    if (!n) return 0;
    /* Zz and Sz, which the factors of the mass matrix have not computed */
    for (int i = 0; i < model->n_bodies && mass; ++i) {
        const struct joint *j = model->joints + i;
        if (j->type >= GENERATED)
            joint_midpoint_by_z(model, data, j, data->multi_dof + j->multi_dof_index);
    }
    load_point_forces(model, data, linearized);
    solve_joint_rows(model, data, data->force_rows, n, ANY_JOINT, data->force_response);
    for (int r = 0; r < n; ++r)
        for (int s = 0; s < n; ++s)
            data->force_matrix[n * r + s] =
                (r == s) +
                product(model->n_free, data->force_by_z + nv * r, data->force_response + nv * s);
    return factor_dense(data->force_matrix, n, n, data->force_pivots);
}

/* dz0 becomes dz0 - Y y. */
INTERNAL void add_low_rank(const struct tree_model *model, const struct tree_data *data,
                           double *dz)
{
    const int n = n_force_rows(model, 0), nv = model->nv;
    double *y = data->force_change;
    for (int i = 0; i < n; ++i) y[i] = product(model->n_free, data->force_by_z + nv * i, dz);
    if (n) solve_dense(data->force_matrix, n, n, data->force_pivots, y, y);
    for (int i = 0; i < n; ++i)
        for (int v = 0; v < model->n_free; ++v) dz[v] -= y[i] * data->force_response[nv * i + v];
}

/* dz = -r_z^{-1} r (T26). */
INTERNAL void solve_with_forces(const struct tree_model *model, const struct tree_data *data,
                                const double *r, double *dz)
{
    solve_joints(model, data, r, dz);
    add_low_rank(model, data, dz);
}
