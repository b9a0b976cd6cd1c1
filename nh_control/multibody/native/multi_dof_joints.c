/* Joints of several rates on manifolds (section 4), by functions of each type
 * (joint_functions.py):
 *
 *     midpoint(q, z, h) -> turn, at, twist, Z0, S0
 *     midpoint_by_z(q, z, h) -> Zz, Sz
 *     endpoint(q, z, h) -> end, Z1, S1
 *     row_by_z(q, z, h, mu, b) -> K
 *     derivatives(q, z, h, mu, b) -> Zq, Sq, Kq, K1, K1q, Ez, Eq
 *     derivatives_by_h(q, z, h, mu, b) -> Zh, Sh, before, after, end
 *     pose(q) -> turn, at, D, dD
 *     end(q, z, h) -> end, Ez
 *
 * of the joint's coordinates q and unknowns z: pose and twist in the middle of the step;
 * displacements Z and twists S (6, n), in the axes of the body, by a change of the start that
 * leaves the end (0), of the end that leaves the start (1), of the unknowns (z) and of the start
 * with them (q). Rows of the step are (T9)
 *
 *     r = rho + h (Z0^T mu + S0^T b),   rho1 = h (Z1^T mu + S1^T b),   mu = a + ad_nu^T b;
 *
 * K...: derivatives of the brackets at fixed mu, b; Ez, Eq: derivatives of local(end, .).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "dense_lu.h"
#include "kernel.h"

/* The functions of a joint. */
INLINE const struct joint_functions *functions_of(const struct tree_model *model,
                                                  const struct joint *j)
{
    return model->joint_functions + j->type - GENERATED;
}

/* One of them in the step of the unknowns z; mu and b where it has these arguments. */
INLINE void call_joint(const struct function *f, const struct tree_data *data,
                       const struct joint *j, const double *z, const double *mu, const double *b,
                       double *const *out)
{
    const double *const in[] = {data->q + j->q_index, z + j->v_index, &data->h, mu, b};
    f->call(f->self, in, out);
}

/* Pose and twist in the middle of the step, Z0 and S0. */
INTERNAL void joint_midpoint(const struct tree_model *model, const struct tree_data *data,
                             const struct joint *j, const double *z, struct multi_dof_joint *w)
{
    double *const out[] = {w->rotation, w->position, w->twist, w->Z0, w->S0};
    call_joint(&functions_of(model, j)->midpoint, data, j, z, 0, 0, out);
}

/* Zz and Sz. */
INTERNAL void joint_midpoint_by_z(const struct tree_model *model, const struct tree_data *data,
                                  const struct joint *j, struct multi_dof_joint *w)
{
    double *const out[] = {w->Zz, w->Sz};
    call_joint(&functions_of(model, j)->midpoint_by_z, data, j, data->z, 0, 0, out);
}

/* Coordinates after the step, Z1 and S1. */
INTERNAL void joint_endpoint(const struct tree_model *model, const struct tree_data *data,
                             const struct joint *j, struct multi_dof_joint *w)
{
    double *const out[] = {w->end, w->Z1, w->S1};
    call_joint(&functions_of(model, j)->endpoint, data, j, data->z, 0, 0, out);
}

/* The same of all joints, for derivatives without the read-out of a step before them. */
INTERNAL void joint_endpoints(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        if (j->type >= GENERATED)
            joint_endpoint(model, data, j, data->multi_dof + j->multi_dof_index);
    }
}

/* K: second derivatives of the row by the unknowns. */
static void joint_row_by_z(const struct tree_model *model, const struct tree_data *data,
                           const struct joint *j, const double *mu, const double *b,
                           struct multi_dof_joint *w)
{
    double *const out[] = {w->K};
    call_joint(&functions_of(model, j)->row_by_z, data, j, data->z, mu, b, out);
}

/* Zq and Sq, and second derivatives by the start and of the row after the step. */
static void joint_derivatives(const struct tree_model *model, const struct tree_data *data,
                              const struct joint *j, const double *mu, const double *b,
                              struct multi_dof_joint *w)
{
    double *const out[] = {w->Zq, w->Sq, w->Kq, w->K1, w->K1q, w->Ez, w->Eq};
    call_joint(&functions_of(model, j)->derivatives, data, j, data->z, mu, b, out);
}

/* Zh and Sh (6), and derivatives by h of the rows times h, before and after, and of the end. */
INTERNAL void joint_by_step(const struct tree_model *model, const struct tree_data *data,
                            const struct joint *j, const double *mu, const double *b, double *Zh,
                            double *Sh, double *before, double *after, double *end)
{
    double *const out[] = {Zh, Sh, before, after, end};
    call_joint(&functions_of(model, j)->derivatives_by_h, data, j, data->z, mu, b, out);
}

/* The pose at a node with the coordinates q of the joint. */
INTERNAL void pose_at_node(const struct tree_model *model, const struct joint *j, const double *q,
                           struct joint_pose *o)
{
    const struct function *f = &functions_of(model, j)->pose;
    const double *const in[] = {q};
    double *const out[] = {o->turn, o->at, o->D, o->dD};
    f->call(f->self, in, out);
}

/* Coordinates after the step, and their derivatives by the unknowns. */
INTERNAL void joint_end(const struct tree_model *model, const struct tree_data *data,
                        const struct joint *j, double *end, double *Ez)
{
    double *const out[] = {end, Ez};
    call_joint(&functions_of(model, j)->end, data, j, data->z, 0, 0, out);
}

/* (D_w, [nu, D] + s): the motion of a body by a displacement D and a twist s (T20). */
INLINE void transported_twist(const struct body *b, struct twist z, struct twist s, v4 *out)
{
    out[0] = z.w;
    out[1] = cross(b->parent_omega, z.w) + s.w;
    out[2] = cross(b->parent_omega, z.v) + cross(b->parent_velocity, z.w) + s.v;
}

/* `left` and `row` (T20) of a row of r, or of the momentum after the step. */
INLINE void multi_dof_left(const struct tree_model *model, const struct tree_data *data,
                           const struct joint *j, const struct body *b, struct twist D,
                           struct twist S, v4 *left, v4 *row)
{
    const struct twist bend = coadjoint(b, D);
    transported_twist(b, D, S, left);
    for (int c = 0; c < 3; ++c) left[c] *= data->h;
    times_rows(left, b->H, row, 0);
    row[0] += data->h * cross(D.v, load_on(model, j, b));
    row[1] += data->h * bend.w;
    row[2] += data->h * bend.v;
}

/* phi and `column` (T16, T20): a motion of the body by its joint, and the change of its parent's
 * wrenches. */
INTERNAL void multi_dof_column(const struct tree_model *model, const struct joint *j,
                               const struct body *b, struct twist D, struct twist S, v4 *phi,
                               v4 *column)
{
    const struct twist bend = coadjoint(b, D);
    transported_twist(b, D, S, phi);
    times_columns(b->H, phi, column, 0);
    column[0] += cross(D.w, b->gravity_torque) + cross(D.v, load_on(model, j, b));
    column[1] += bend.w;
    column[2] += bend.v;
}

/* Motions of a body by the rates of a joint, and its twists, component by component. */
struct motion_table {
    v4 motion[9][2], twist[6][2];
};

/* The motions phi and the twists s of n rates. Vectors are not written number by number, which
 * would hold up their reading. */
INLINE void load_motions(int n, const v4 *phi[MAX_DOF], const struct twist *s,
                         struct motion_table *x)
{
    static const v4 rest[3];
    static const struct twist still;
    const v4 *a[8];
    const struct twist *t[8];
    for (int m = 0; m < 8; ++m) a[m] = m < n ? phi[m] : rest, t[m] = m < n ? s + m : &still;
    for (int i = 0; i < 3; ++i)
        for (int half = 0; half < 2; ++half) {
            const int k = 4 * half;
            for (int c = 0; c < 3; ++c)
                x->motion[3 * c + i][half] =
                    (v4){a[k][c][i], a[k + 1][c][i], a[k + 2][c][i], a[k + 3][c][i]};
            x->twist[i][half] = (v4){t[k]->w[i], t[k + 1]->w[i], t[k + 2]->w[i], t[k + 3]->w[i]};
            x->twist[3 + i][half] =
                (v4){t[k]->v[i], t[k + 1]->v[i], t[k + 2]->v[i], t[k + 3]->v[i]};
        }
}

/* row_l . phi_m + h (K_lm - E_l . s_m), E = -ad_D^T b (T20): by the displacements D of the rows,
 * and the motions phi and twists s in x; sums in the order of `inner` and `power`. */
INLINE void pivot_block(const struct tree_data *data, const struct body *b, int n,
                        const v4 *rows[MAX_DOF], const struct twist *D,
                        const struct motion_table *x, const double *K, double *all)
{
    for (int l = 0; l < n; ++l) {
        const struct twist E = coadjoint(b, D[l]);
        const v4 *row = rows[l];
        v4 products[2], powers[2], part[3], turned[3];
        for (int half = 0; half < 2; ++half) {
            for (int i = 0; i < 3; ++i) {
                part[i] = row[0][i] * x->motion[i][half] + row[1][i] * x->motion[3 + i][half] +
                          row[2][i] * x->motion[6 + i][half];
                turned[i] = E.w[i] * x->twist[i][half] + E.v[i] * x->twist[3 + i][half];
            }
            products[half] = part[0] + part[1] + part[2];
            powers[half] = turned[0] + turned[1] + turned[2];
        }
        for (int m = 0; m < n; ++m)
            all[n * l + m] =
                products[m / 4][m % 4] + data->h * (K[n * l + m] - powers[m / 4][m % 4]);
    }
}

/* mu and b as arrays of the generated functions. */
INTERNAL void joint_wrenches(const struct multi_dof_joint *w, double *mu, double *b)
{
    for (int i = 0; i < 3; ++i)
        mu[i] = w->mu_torque[i], mu[3 + i] = w->mu_force[i], b[i] = w->b_torque[i],
        b[3 + i] = w->b_force[i];
}

/* Rows, motions and pivot of a joint of several rates (T20); of the
 * linearization also rows of the momentum after the step (T32), and motions by the start (T31). */
INTERNAL void multi_dof_row(const struct tree_model *model, const struct tree_data *data,
                            const struct joint *j, const struct body *b, enum equation equation)
{
    const int linearized = equation == LINEARIZATION;
    struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    struct newton_row *o = data->rows + j->v_index;
    const int n = j->n_dof;
    const v4 *row[MAX_DOF], *row1[MAX_DOF], *phi[MAX_DOF], *phi_q[MAX_DOF];
    struct motion_table by_z, by_q;
    struct twist Z0[MAX_DOF], Z1[MAX_DOF], D[MAX_DOF], S[MAX_DOF], Sz[MAX_DOF];
    double mu[6], wrench[6];
    joint_wrenches(w, mu, wrench);
    joint_midpoint_by_z(model, data, j, w);
    joint_row_by_z(model, data, j, mu, wrench, w);
    twists_of(b, w->Z0, n, Z0);
    twists_of(b, w->S0, n, S);
    twists_of(b, w->Zz, n, D);
    twists_of(b, w->Sz, n, Sz);
    for (int l = 0; l < n; ++l) {
        multi_dof_left(model, data, j, b, Z0[l], S[l], o[l].left, o[l].row);
        multi_dof_column(model, j, b, D[l], Sz[l], o[l].phi, o[l].column);
        row[l] = o[l].row, row1[l] = o[l].row1, phi[l] = o[l].phi, phi_q[l] = o[l].phi_q;
    }
    load_motions(n, phi, Sz, &by_z);
    pivot_block(data, b, n, row, Z0, &by_z, w->K, w->pivot);
    if (!linearized) return;
    joint_derivatives(model, data, j, mu, wrench, w);
    twists_of(b, w->Z1, n, Z1);
    twists_of(b, w->S1, n, S);
    for (int l = 0; l < n; ++l)
        multi_dof_left(model, data, j, b, Z1[l], S[l], o[l].left1, o[l].row1);
    pivot_block(data, b, n, row1, Z1, &by_z, w->K1, w->slope1);
    twists_of(b, w->Zq, n, D);
    twists_of(b, w->Sq, n, S);
    for (int l = 0; l < n; ++l)
        multi_dof_column(model, j, b, D[l], S[l], o[l].phi_q, o[l].column_q);
    load_motions(n, phi_q, S, &by_q);
    pivot_block(data, b, n, row, Z0, &by_q, w->Kq, w->source);
    pivot_block(data, b, n, row1, Z1, &by_q, w->K1q, w->source1);
}

/* b (n) = pivot^{-1} right (n). */
INTERNAL void solve_multi_dof(const struct multi_dof_joint *w, int n, const double *right,
                              double *b)
{
    solve_dense(w->pivot, n, n, w->pivots, right, b);
}

/* LU factors of the pivot, and `row` and `left` divided by it; 1 where it is singular. */
INTERNAL int factor_multi_dof(const struct tree_data *data, const struct joint *j)
{
    struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    struct newton_row *o = data->rows + j->v_index;
    const int n = j->n_dof;
    v4 solved[MAX_DOF][6];
    enum { WIDTH = sizeof *solved / sizeof(vn) };
    if (factor_dense(w->pivot, n, n, w->pivots)) return 1;
    for (int i = 0; i < n; ++i) {
        memcpy(solved[i], o[i].row, sizeof o[i].row);
        memcpy(solved[i] + 3, o[i].left, sizeof o[i].left);
    }
    for (int c = 0; c < WIDTH && n == MAX_DOF; ++c)
        solve_joint_columns(w->pivot, w->pivots, WIDTH, (vn *)solved + c);
    if (n < MAX_DOF) lu_solve_rows(n, n, 6 * 4, w->pivot, w->pivots, (double *)solved);
    for (int i = 0; i < n; ++i) {
        memcpy(o[i].row, solved[i], sizeof o[i].row);
        memcpy(o[i].left, solved[i] + 3, sizeof o[i].left);
    }
    return 0;
}
