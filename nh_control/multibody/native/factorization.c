/* Newton's equation r + r_z dz = 0 of the joints in linear time [fan2018]: the articulated-body
 * algorithm [featherstone2008, table 7.1] for the equations of a step. Every body gives its parent
 * wrenches that are linear in its motion x = (turn, dxi) (T12),
 *
 *     y = H x + c,
 *     pivot = row . phi + ...,                                                  (T15)
 *     dz = -(row . F x_parent + left . c + r) / pivot,                          (T17)
 *     H_parent += F^T (H - column row / pivot) F,                              (T18)
 *
 * with F from motions of the parent to those of the body (T10).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* H of a body alone (T13); those of its children are added to it. */
INLINE void rigid_body_inertia(const struct joint *j, struct body *b, int plane)
{
    const v4 zero = vec(0, 0, 0), c = b->first_moment;
    const v4 lever[3] = {vec(0, -c[2], c[1]), vec(c[2], 0, -c[0]), vec(-c[1], c[0], 0)};
    const v4 J[3] = {outward(b, j->inertia[0]), outward(b, j->inertia[1]),
                     outward(b, j->inertia[2])};
    for (int i = first_rotation_axis(plane); i < 3; ++i) {
        const v4 about =
            plane ? j->inertia[2][2] * UNITS[2]
                  : J[0][i] * b->column[0] + J[1][i] * b->column[1] + J[2][i] * b->column[2];
        pack(zero, zero, zero, row_of(b->H, 0, i, plane), plane);
        pack(zero, about, lever[i], row_of(b->H, 1, i, plane), plane);
    }
    for (int i = 0; i < n_translations(plane); ++i)
        pack(zero, -lever[i], j->mass * UNITS[i], row_of(b->H, 2, i, plane), plane);
    b->carried_moment = c;
}

/* A force f that does not turn with the body, at the lever c, changes its torque by c x (f x turn)
 * = f (c . turn) - (c . f) turn: G of (T13). Of gravity, c is the first moment of all that is
 * carried. */
INLINE void add_force_stiffness(v4 f, v4 c, struct body *b, int plane)
{
    const double along = dot(c, f);
    for (int i = first_rotation_axis(plane); i < 3; ++i) {
        const v4 turned = f[i] * c - along * UNITS[i];
        *row_of(b->H, 0, i, plane) += plane ? turned[2] * UNITS[0] : turned;
    }
}

/* H begins with the body's own at the first use. */
INLINE void start_inertia(const struct joint *j, struct body *b, int plane)
{
    if (!b->has_inertia) rigid_body_inertia(j, b, plane);
    b->has_inertia = 1.0;
}

/* A row of H - column row / pivot (T18) for a joint of n rates, on motions of the parent; `row` is
 * divided by the pivot already; parts from `part` on. */
INLINE void articulated_row(const struct body *b, const struct newton_row *o, int n, int block,
                            int i, int part, v4 *h, int plane)
{
    const v4 *row = b->H + parts(plane) * component_index(block, i, plane);
    for (int c = part; c < parts(plane); ++c) h[c] = row[c];
    for (int l = 0; l < n; ++l) {
        const double f = component(o[l].column, component_index(block, i, plane), plane);
        for (int c = part; c < parts(plane); ++c) h[c] -= f * o[l].row[c];
    }
    wrench_to_parent(b->p, h, plane);
}

/* Adds F^T (H - column row / pivot) F to the parent's H (T18); of a mass matrix without turns. */
INLINE void pass_inward(const struct joint *j, const struct body *b, struct newton_row *o, int n,
                        struct body *parent, int mass, int plane)
{
    const v4 p = b->p;
    const int end = parts(plane), part = mass && !plane;
    v4 f[3][3], h[3];
    for (int l = 0; l < n; ++l) {
        for (int c = 0; c < end; ++c)
            o[l].column_in[c] = o[l].column[c], o[l].row_in[c] = o[l].row[c];
        wrench_to_parent(b->p, o[l].column_in, plane);
        wrench_to_parent(b->p, o[l].row_in, plane);
    }
    for (int i = 0; i < n_translations(plane); ++i) {
        articulated_row(b, o, n, 2, i, part, f[i], plane);
        v4 *to = row_of(parent->H, 2, i, plane);
        for (int c = part; c < end; ++c) to[c] += f[i][c];
    }
    for (int i = first_rotation_axis(plane); i < 3; ++i) {
        const int y = (i + 1) % 3, z = (i + 2) % 3;
        articulated_row(b, o, n, 1, i, part, h, plane);
        v4 *to = row_of(parent->H, 1, i, plane);
        for (int c = part; c < end; ++c) to[c] += h[c] + p[y] * f[z][c] - p[z] * f[y][c];
    }
    for (int i = first_rotation_axis(plane); i < 3 && !mass; ++i) {
        articulated_row(b, o, n, 0, i, part, h, plane);
        v4 *to = row_of(parent->H, 0, i, plane);
        for (int c = 0; c < end; ++c) to[c] += h[c];
    }
    parent->carried_moment += j->carried_mass * p;
}

/* Of a scalar joint that slides along S: change of the motion by the coordinate, unit motion, and
 * change of the wrenches on the parent by the coordinate (T11, T16). */
INLINE void slide_terms(const struct tree_model *model, const struct joint *j,
                        const struct body *b, v4 S, v4 *moved, v4 *unit, v4 *column_e, int plane)
{
    const v4 zero = vec(0, 0, 0);
    pack(zero, zero, cross(b->parent_omega, S), moved, plane);
    pack(zero, zero, S, unit, plane);
    pack(cross(S, load_on(model, j, b)), cross(S, b->linear_momentum), zero, column_e, plane);
}

/* The products of H with the unit motion of a scalar joint, of whose components most are zero. */
INLINE void times_unit(const struct joint *j, const v4 *H, const v4 *unit, v4 *row, v4 *column,
                       int plane)
{
    if (plane || j->pitch != 0.0) {
        times_rows(unit, H, row, plane);
        times_columns(H, unit, column, plane);
        return;
    }
    const int part = rotates(j) ? 1 : 2;
    const v4 S = unit[part], *rows = H + 9 * part;
    v4 all[9];
    for (int c = 0; c < 3; ++c) row[c] = S[0] * rows[c] + S[1] * rows[3 + c] + S[2] * rows[6 + c];
    for (int i = 0; i < 9; ++i) all[i] = H[3 * i + part] * S;
    for (int c = 0; c < 3; ++c) column[c] = sums(all[3 * c], all[3 * c + 1], all[3 * c + 2]);
}

/* phi, left, column, row and pivot of a scalar joint (T11, T14 to T16); with `linearized` also
 * the row of the momentum after the step (T32), and motions by the start (T31). */
INLINE void scalar_row(const struct tree_model *model, const struct tree_data *data,
                       const struct joint *j, const struct body *b, int linearized, int plane)
{
    struct newton_row *o = data->rows + j->v_index;
    const int end = parts(plane);
    const double k = data->half_step;
    const v4 zero = vec(0, 0, 0), S = axis_of(j, b->column);
    v4 moved[3], unit[3], column_e[3], row_e[3]; /* e of (T16) and (T14) */
    if (rotates(j)) {
        const v4 e_w = cross(S, b->angular_momentum), e_v = cross(S, b->linear_momentum);
        pack(S, cross(b->parent_omega, S), cross(b->parent_velocity, S), moved, plane);
        pack(zero, S, zero, unit, plane);
        pack(cross(S, b->gravity_torque), e_w, e_v, column_e, plane);
        pack(zero, e_w, e_v, row_e, plane);
        if (j->pitch != 0.0) {
            v4 slid[3], along[3], turned[3];
            slide_terms(model, j, b, S, slid, along, turned, plane);
            for (int c = 0; c < end; ++c) {
                moved[c] += j->pitch * slid[c];
                unit[c] += j->pitch * along[c];
                column_e[c] += j->pitch * turned[c];
                row_e[c] += j->pitch * turned[c];
            }
        }
    } else {
        slide_terms(model, j, b, S, moved, unit, column_e, plane);
        for (int c = 0; c < end; ++c) row_e[c] = column_e[c];
    }
    for (int c = 0; c < end; ++c) {
        o->phi[c] = k * moved[c] + unit[c];
        o->left[c] = k * moved[c] - unit[c];
    }
    if (linearized) { /* phi = k moved + unit, left = k moved - unit, phi_q = moved */
        v4 row_m[3], row_u[3], column_u[3];
        times_rows(moved, b->H, row_m, plane);
        times_columns(b->H, moved, o->column_q, plane);
        times_unit(j, b->H, unit, row_u, column_u, plane);
        for (int c = 0; c < end; ++c) {
            const v4 both = k * (row_m[c] + row_e[c]);
            o->left1[c] = o->phi[c], o->phi_q[c] = moved[c];
            o->row[c] = both - row_u[c], o->row1[c] = both + row_u[c];
            o->column_q[c] += column_e[c];
            o->column[c] = k * o->column_q[c] + column_u[c];
        }
    } else {
        times_columns(b->H, o->phi, o->column, plane);
        times_rows(o->left, b->H, o->row, plane);
        for (int c = 0; c < end; ++c) o->column[c] += k * column_e[c], o->row[c] += k * row_e[c];
    }
    const double stiffness = springs_at(model, j, middle_of(data, j, b)).stiffness;
    o->pivot = inner(o->row, o->phi, plane) - k * k * stiffness -
               model->start_fraction * data->h * resistance_slope(j, b->rate);
    if (!linearized) return;
    o->slope1 = inner(o->row1, o->phi, plane) - k * k * stiffness -
                (1 - model->start_fraction) * data->h * resistance_slope(j, b->rate);
    o->source = inner(o->row, o->phi_q, plane) - k * stiffness;
    o->source1 = inner(o->row1, o->phi_q, plane) - k * stiffness;
}

/* The same for the mass matrix instead of r_z (T21): as if nothing moved and gravity did not
 * turn. */
INLINE void mass_row(const struct tree_model *model, const struct tree_data *data,
                     const struct joint *j, const struct body *b, int plane)
{
    struct newton_row *o = data->rows + j->v_index;
    const v4 zero = vec(0, 0, 0), S = axis_of(j, b->column);
    const struct twist unit = unit_twist(j, b->column);
    const int part = rotates(j) ? 1 : 2;
    pack(zero, unit.w, unit.v, o->phi, plane);
    if (plane) times_columns(b->H, o->phi, o->column, plane);
    else {
        v4 all[9];
        for (int i = 3; i < 9; ++i) all[i] = b->H[3 * i + part] * S;
        if (rotates(j) && j->pitch != 0.0)
            for (int i = 3; i < 9; ++i) all[i] += b->H[3 * i + 2] * unit.v;
        o->column[0] = zero;
        for (int c = 1; c < 3; ++c)
            o->column[c] = sums(all[3 * c], all[3 * c + 1], all[3 * c + 2]);
    }
    for (int c = 0; c < parts(plane); ++c) o->left[c] = -o->phi[c], o->row[c] = -o->column[c];
    const double k = data->half_step,
                 stiffness = springs_at(model, j, middle_of(data, j, b)).stiffness;
    o->pivot = inner(o->row, o->phi, plane) - k * k * stiffness -
               model->start_fraction * data->h * resistance_slope(j, b->rate);
}

/* The same for a joint with several rates, whose twists by the unknowns are -h S0 at z = 0. */
static void multi_dof_mass_row(const struct tree_data *data, const struct joint *j,
                               const struct body *b)
{
    struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    struct newton_row *o = data->rows + j->v_index;
    const int n = j->n_dof;
    struct twist S[MAX_DOF];
    twists_of(b, w->S0, n, S);
    for (int l = 0; l < n; ++l) {
        pack(vec(0, 0, 0), -data->h * S[l].w, -data->h * S[l].v, o[l].phi, 0);
        times_columns(b->H, o[l].phi, o[l].column, 0);
        o[l].column[0] = vec(0, 0, 0);
        for (int c = 0; c < 3; ++c) o[l].left[c] = -o[l].phi[c], o[l].row[c] = -o[l].column[c];
    }
    for (int l = 0; l < n; ++l)
        for (int m = 0; m < n; ++m) w->pivot[n * l + m] = inner(o[l].row, o[m].phi, 0);
}

/* `row` and `left` are divided by the pivot, and the articulated H goes to the parent. Returns 1
 * for a pivot that is zero or not finite. */
INLINE int eliminate(const struct tree_model *model, const struct tree_data *data,
                     const struct joint *j, struct body *b, int mass, int plane)
{
    struct newton_row *o = data->rows + j->v_index;
    const int n = plane ? 1 : j->n_dof;
    if (n == 1 && j->mode == FREE) {
        if (!(fabs(o->pivot) > 0.0 && fabs(o->pivot) < INFINITY)) return 1;
        const double by = 1.0 / o->pivot;
        for (int c = 0; c < parts(plane); ++c) o->row[c] *= by, o->left[c] *= by;
    }
    if (n > 1 && factor_multi_dof(data, j)) return 1;
    if (j->parent < 0) return 0;
    struct body *parent = data->bodies + j->parent;
    start_inertia(model->joints + j->parent, parent, plane);
    if (j->mode != FREE) pass_inward(j, b, o, 0, parent, mass, plane);
    else if (n == 1) pass_inward(j, b, o, 1, parent, mass, plane);
    else pass_inward(j, b, o, n, parent, mass, plane);
    if (model->n_springs + model->n_dampers && !mass)
        add_force_stiffness(b->spring_force, b->p, parent, plane);
    return 0;
}

/* Forces of springs and dampers that do not turn with the bodies at their ends: G of (T13). */
INLINE void add_point_force_stiffness(const struct tree_model *model, const struct tree_data *data,
                                      int count, int plane)
{
    for (int i = 0; i < count; ++i) {
        const struct point_force *c = model->point_forces + i;
        const v4 force = point_force_on_a(model, data, c);
        for (int end = 0; end < 2; ++end) {
            const int body = end ? c->b : c->a;
            if (body < 0) continue;
            start_inertia(model->joints + body, data->bodies + body, plane);
            add_force_stiffness(end ? -force : force,
                                world_lever(data, body, end ? c->at_b : c->at_a),
                                data->bodies + body, plane);
        }
    }
}

/* Factors of a matrix where the last residual was taken, from the leaves to the root; 1 if it is
 * singular. */
INLINE int factor_sweep(const struct tree_model *model, const struct tree_data *data,
                        enum equation equation, int plane)
{
    const int mass = equation == MASS_MATRIX, linearized = equation == LINEARIZATION;
    for (int i = 0; i < model->n_bodies; ++i) data->bodies[i].has_inertia = 0.0;
    if (!mass)
        add_point_force_stiffness(model, data,
                                  model->n_springs + (linearized ? 0 : model->n_dampers), plane);
    for (int i = model->n_bodies - 1; i >= 0; --i) {
        const struct joint *j = model->joints + i;
        struct body *b = data->bodies + i;
        if (j->mode == IDLE) continue;
        start_inertia(j, b, plane);
        if (!mass) add_force_stiffness(model->gravity, b->carried_moment, b, plane);
        if (!plane && j->type >= GENERATED)
            mass ? multi_dof_mass_row(data, j, b)
                 : multi_dof_row(model, data, j, b, equation);
        else
            mass ? mass_row(model, data, j, b, plane)
                 : scalar_row(model, data, j, b, linearized, plane);
        if (eliminate(model, data, j, b, mass, plane)) return 1;
    }
    return 0;
}

/* The same for trees in space and in a plane. */
INTERNAL int factor_tree(const struct tree_model *model, const struct tree_data *data,
                         enum equation equation)
{
    switch (equation) { /* constants, so that the compiler makes a version of each */
    case MASS_MATRIX:
        return model->planar ? factor_sweep(model, data, MASS_MATRIX, 1)
                             : factor_sweep(model, data, MASS_MATRIX, 0);
    case LINEARIZATION:
        return model->planar ? factor_sweep(model, data, LINEARIZATION, 1)
                             : factor_sweep(model, data, LINEARIZATION, 0);
    default:
        return model->planar ? factor_sweep(model, data, NEWTON_EQUATION, 1)
                             : factor_sweep(model, data, NEWTON_EQUATION, 0);
    }
}

/* Adds the part of a mimic joint that moves by `by` to the row of its shared coordinate: K_st dz_t
 * + K_ss dz_s (T23). */
INLINE void mimic_row(const struct tree_data *data, const struct joint *j,
                      const struct newton_row *o, double by, struct body *b, int plane)
{
    data->shared_row[j->rate_index] +=
        j->ratio *
        (inner(o->row, b->motion, plane) + inner(o->left, b->wrench, plane) + by * o->pivot);
    for (int c = 0; c < parts(plane); ++c) b->motion[c] += by * o->phi[c];
}

/* The wrenches of the parent change as a mimic joint moves by `by`. */
INLINE void mimic_wrench(const struct body *b, const struct newton_row *o, double by, v4 *c,
                         int plane)
{
    v4 moved[3];
    for (int k = 0; k < parts(plane); ++k) moved[k] = by * o->column[k];
    add_wrench_to_parent(b->p, moved, c, plane);
}

/* dz = -r_z^{-1} r: wrenches c inward (T19), motions x outward (T17, T11). Changes of shared
 * coordinates are given in dz. */
INLINE void solve_sweep(const struct tree_model *model, const struct tree_data *data,
                        const double *r, double *dz, int plane)
{
    const v4 none[3] = {vec(0, 0, 0), vec(0, 0, 0), vec(0, 0, 0)};
    const int end = parts(plane);
    for (int i = 0; i < model->n_bodies; ++i)
        memcpy(data->bodies[i].wrench, none, sizeof *none * end);
    for (int i = model->n_bodies - 1; i >= 0; --i) {
        const struct joint *j = model->joints + i;
        const struct body *b = data->bodies + i;
        const int v = j->v_index, n = j->mode != FREE ? 0 : plane ? 1 : j->n_dof;
        if (j->mode == IDLE) continue;
        const struct newton_row *o = data->rows + v;
        if (n == 1) dz[v] = r[v] / o->pivot;
        else if (n > 1) solve_multi_dof(data->multi_dof + j->multi_dof_index, n, r + v, dz + v);
        for (int l = 0; l < n; ++l) dz[v + l] += inner(o[l].left, b->wrench, plane);
        if (j->parent < 0) continue;
        v4 *c = data->bodies[j->parent].wrench;
        add_wrench_to_parent(b->p, b->wrench, c, plane);
        if (is_coupled(j)) mimic_wrench(b, o, j->ratio * dz[j->rate_index], c, plane);
        for (int l = 0; l < n; ++l)
            for (int k = 0; k < end; ++k) c[k] -= dz[v + l] * o[l].column_in[k];
    }
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        struct body *b = data->bodies + i;
        const int v = j->v_index, n = j->mode != FREE ? 0 : plane ? 1 : j->n_dof;
        if (j->mode == IDLE) continue;
        const struct newton_row *o = data->rows + v;
        const v4 *x = j->parent < 0 ? none : data->bodies[j->parent].motion;
        motion_to_child(b->p, x, b->motion, plane);
        if (is_coupled(j)) mimic_row(data, j, o, j->ratio * dz[j->rate_index], b, plane);
        for (int l = 0; l < n; ++l) {
            dz[v + l] = -(dz[v + l] + (j->parent < 0 ? 0.0 : inner(o[l].row_in, x, plane)));
            for (int c = 0; c < end; ++c) b->motion[c] += dz[v + l] * o[l].phi[c];
        }
    }
}

/* The same for trees in space and in a plane. */
INTERNAL void solve_tree(const struct tree_model *model, const struct tree_data *data,
                         const double *r, double *dz)
{
    if (model->planar) solve_sweep(model, data, r, dz, 1);
    else solve_sweep(model, data, r, dz, 0);
}
