/* Newton's equation of the tree and its constraints together, a KKT system (T28, T29): the
 * multipliers lam stand behind the tree's unknowns, its rows become r - Dh(q0)^T lam. With the
 * tree's factors and its own correction dz0,
 *
 *     Y = r_z^{-1} Dh(q0)^T,   (Dh(q1) q1_z Y) dlam = -h - Dh(q1) q1_z dz0,   dz = dz0 + Y dlam.
 *
 * The small matrix is dense; [brudigam2020] has a sparse one for loops of bodies in maximal
 * coordinates.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Once a step: Dh(q0), and bounds on its terms and on those of h. */
INTERNAL void start_constraints(const struct tree_model *model, const struct tree_data *data)
{
    if (!model->n_constraints) return;
    constraint_jacobian(model, data, data->q, data->G0);
    if (model->n_wheel_rows) start_wheels(model, data);
    memset(data->schur_size, 0, sizeof(double) * model->n_constraints * model->n_constraints);
    for (int r = 0; r < n_closures(model); ++r) {
        data->h0_size[r] = data->constraint_values[r].size;
        constraint_gradient_size(model, data, model->constraints + r, data->constraint_values + r,
                                 data->G0_size + (size_t)model->nv * r);
    }
}

/* The residual with the multipliers behind z (T28). The terms of h(q1) are bounded by those of
 * h(q0), by the step, which is no larger than both ends, and by the changes of the multipliers: h
 * is zero where they keep a body from moving. */
INTERNAL void kkt_residual(const struct tree_model *model, const struct tree_data *data,
                           const double *z, double turns)
{
    residual(model, data, z, turns);
    if (!model->n_constraints) return;
    const double *lam = z + model->n_free;
    memcpy(data->z, z, sizeof(double) * (model->n_free + model->n_constraints));
    if (n_closures(model)) {
        end_configuration(model, data);
        evaluate_constraints(model, data, data->q1);
    }
    if (model->n_wheel_rows) evaluate_wheels(model, data, z);
    if (model->n_wheel_rows && turns > 0.0) measure_wheels(model, data, z);
    for (int r = 0; r < model->n_constraints; ++r) {
        const double *g = data->G0 + (size_t)model->nv * r,
                     *sizes = data->G0_size + (size_t)model->nv * r,
                     *replies = data->schur_size + (size_t)model->n_constraints * r;
        const int wheel = r - n_closures(model);
        data->r[model->n_free + r] =
            wheel < 0 ? data->constraint_values[r].value : data->wheel_values[wheel];
        for (int v = 0; v < model->n_free; ++v) data->r[v] -= g[v] * lam[r];
        if (!(turns > 0.0)) continue;
        double *size = data->r_size + model->n_free + r;
        *size = wheel < 0 ? turns * (data->h0_size[r] + data->constraint_values[r].size)
                          : data->wheel_sizes[wheel];
        for (int s = 0; s < model->n_constraints; ++s) *size += replies[s] * fabs(lam[s]);
        for (int v = 0; v < model->n_free; ++v) data->r_size[v] += sizes[v] * fabs(lam[r]);
    }
}

/* Dh(q1) q1_z (m, nv) where the last residual was taken; the columns of prescribed coordinates are
 * Dh(q1). */
INTERNAL void constraint_jacobian_by_z(const struct tree_model *model,
                                       const struct tree_data *data)
{
    if (model->n_wheel_rows) wheel_jacobian(model, data);
    if (!n_closures(model)) return;
    constraint_jacobian(model, data, data->q1, data->G1);
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const int n = j->n_dof;
        if (is_prescribed(j) || j->mode == MIMIC || !j->constrained) continue;
        for (int r = 0; r < n_closures(model); ++r) {
            double *g = data->G1 + (size_t)model->nv * r + j->v_index, by[MAX_DOF] = {0};
            for (int l = 0; l < n; ++l)
                for (int k = 0; k < n; ++k)
                    by[k] += g[l] * (n > 1 ? data->joint_poses[j->multi_dof_index].Ez[n * l + k]
                                           : data->h);
            memcpy(g, by, sizeof(double) * n);
        }
    }
}

/* Y = r_z^{-1} Dh(q0)^T (T29). */
static void solve_constraint_rows(const struct tree_model *model, const struct tree_data *data)
{
    solve_joint_rows(model, data, data->G0, model->n_constraints, FROM_CONSTRAINED, data->Y);
    for (int r = 0; r < model->n_constraints; ++r)
        add_low_rank(model, data, data->Y + (size_t)model->nv * r);
}

/* Factors of the tree, Y, and factors of the small matrix (T29); 1 if they are singular. */
INTERNAL int kkt_factor(const struct tree_model *model, const struct tree_data *data,
                        enum equation equation)
{
    if (factor_with_forces(model, data, equation)) return 1;
    if (!model->n_constraints) return 0;
    constraint_jacobian_by_z(model, data);
    solve_constraint_rows(model, data);
    for (int r = 0; r < model->n_constraints; ++r)
        for (int s = 0; s < model->n_constraints; ++s)
            data->schur[(size_t)model->n_constraints * r + s] = product(
                model->n_free, data->G1 + (size_t)model->nv * r, data->Y + (size_t)model->nv * s);
    for (int i = 0; i < model->n_constraints * model->n_constraints; ++i)
        data->schur_size[i] = fabs(data->schur[i]);
    return factor_dense(data->schur, model->n_constraints, n_independent(model),
                        data->schur_pivots);
}

/* dz and dlam of (T29). */
INTERNAL void kkt_solve(const struct tree_model *model, const struct tree_data *data,
                        const double *r, double *dz)
{
    solve_with_forces(model, data, r, dz);
    if (!model->n_constraints) return;
    double *lam = dz + model->n_free;
    for (int i = 0; i < model->n_constraints; ++i)
        lam[i] =
            -r[model->n_free + i] - product(model->n_free, data->G1 + (size_t)model->nv * i, dz);
    solve_dense(data->schur, model->n_constraints, n_independent(model), data->schur_pivots, lam,
                lam);
    for (int i = 0; i < model->n_constraints; ++i)
        for (int v = 0; v < model->n_free; ++v)
            dz[v] += data->Y[(size_t)model->nv * i + v] * lam[i];
}

/* The velocity z becomes the one that keeps Dh(q0) v = 0, by impulses Dh^T mu (T30), with the
 * factors of the mass matrix. */
INTERNAL int project_velocity(const struct tree_model *model, const struct tree_data *data,
                              double *z)
{
    double *right = data->projection;
    solve_constraint_rows(model, data);
    if (model->n_rolling) {
        memset(data->dz, 0, sizeof(double) * model->n_free);
        evaluate_wheels(model, data, data->dz);
    }
    for (int r = 0; r < model->n_constraints; ++r) {
        const double *g = data->G0 + (size_t)model->nv * r;
        const int rolling = r - model->n_constraints + model->n_rolling;
        right[r] = 0.0;
        if (rolling >= 0) { /* A v = b, with the velocities of prescribed coordinates */
            right[r] = -data->wheel_values[r - n_closures(model)];
            right[r] -= product(model->n_free, g, z);
        }
        for (int i = 0; i < model->n_bodies && rolling < 0; ++i) {
            const struct joint *j = model->joints + i;
            for (int v = j->v_index; v < j->v_index + j->n_dof && v < model->nv; ++v)
                right[r] -= g[v] * (is_prescribed(j) ? data->bodies[i].rate : z[v]);
        }
        for (int s = 0; s < model->n_constraints; ++s)
            data->schur[(size_t)model->n_constraints * r + s] =
                product(model->n_free, g, data->Y + (size_t)model->nv * s);
    }
    if (factor_dense(data->schur, model->n_constraints, n_independent(model), data->schur_pivots))
        return SINGULAR;
    solve_dense(data->schur, model->n_constraints, n_independent(model), data->schur_pivots, right,
                right);
    for (int r = 0; r < model->n_constraints; ++r)
        for (int v = 0; v < model->n_free; ++v)
            z[v] += data->Y[(size_t)model->nv * r + v] * right[r];
    return CONVERGED;
}
