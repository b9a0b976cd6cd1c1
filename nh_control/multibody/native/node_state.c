/* Momenta, velocities and energy of a state: those of a step that takes no time.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* A step that takes no time, without inputs. */
static struct tree node_at(double *const *a)
{
    struct tree tree = tree_at(a);
    memset(tree.data.joint_force, 0, sizeof(double) * tree.model.n_rates);
    tree.data = node_of(&tree.data);
    return tree;
}

/* Momenta rho (nv) of the configuration in a[X] with the velocity in a[Z], into a[X1]: L_v
 * (T8). */
void tree_momentum(double *const *a)
{
    const struct tree tree = node_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    residual(model, data, a[Z], 1.0);
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const int v = j->v_index, n = j->n_dof;
        if (v >= model->nv) continue;
        if (j->type < GENERATED) {
            a[X1][model->nq + v] = data->dL_dv[v];
            continue;
        }
        struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
        joint_midpoint_by_z(model, data, j, w);
        for (int l = 0; l < n; ++l)
            a[X1][model->nq + v + l] =
                power((struct twist){w->b_torque, w->b_force}, twist_of(w->Sz, n, l));
    }
    if (model->n_shared) add_mimic_rows(model, data, 0.0, 1.0, a[X1] + model->nq);
}

/* The same, of the admissible part of the velocity (T40); 1 if the mass matrix is singular. */
int tree_state(double *const *a)
{
    const struct tree tree = node_at(a);
    tree_momentum(a);
    if (!tree.model.n_rolling) return 0;
    memcpy(a[X1], a[X], sizeof(double) * tree.model.nq);
    return project_momentum(&tree.model, &tree.data, a[X1]) != CONVERGED;
}

/* The velocity of the state in a[X], into a[Z]. */
int tree_velocity(double *const *a)
{
    const struct tree tree = tree_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    memset(data->joint_force, 0, sizeof(double) * model->n_rates);
    double *z = model->n_rolling ? data->unknowns : a[Z];
    start_constraints(model, data);
    const int status = velocity_of(model, data, z);
    if (model->n_rolling) store_unknowns(model, data, a[Z]);
    return status;
}

/* Energy (J) of the configuration in a[X] with the velocity in a[Z]: kinetic v . p / 2, gravity's
 * by the heights of the frames, and springs'. */
double tree_energy(double *const *a)
{
    const struct tree tree = node_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    double energy = 0.5 * model->energy_at_rest;
    tree_momentum(a);
    for (int i = 0; i < model->nv; ++i) energy += 0.5 * a[Z][i] * a[X1][model->nq + i];
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        struct body *b = data->bodies + i;
        b->potential =
            (j->parent < 0 ? 0.0 : data->bodies[j->parent].potential) + dot(model->gravity, b->p);
        energy -= j->mass * b->potential + dot(b->first_moment, model->gravity);
        if (j->type < GENERATED) energy += springs_at(model, j, data->q[j->q_index]).energy;
    }
    for (int i = 0; i < model->n_springs; ++i) {
        const struct point_force *c = model->point_forces + i;
        const v4 s = separation(data, c);
        const double longer = sqrt(dot(s, s)) - c->rest;
        energy += 0.5 * c->stiffness * longer * longer;
    }
    return energy;
}
