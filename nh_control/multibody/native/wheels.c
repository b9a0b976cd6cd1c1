/* Constraints of wheels, whose rows are generated functions (tree_wheels.py): heights h(q1) = 0,
 * then rolling A(q_mid) v_mid = b(q_mid), n_rolling rows. Their impulses act at the start of the
 * step like the multipliers of closures (T39), and are not unknowns outside this file: rolling
 * leaves the momenta of admissible velocities, whose components are X^T p (T41).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Rows of the wheels in an array (m, nv). */
static double *wheel_rows_of(const struct tree_model *model, double *rows)
{
    return rows + (size_t)model->nv * n_closures(model);
}

/* Once a step: J(q0) into G0, and bounds on its terms. */
INTERNAL void start_wheels(const struct tree_model *model, const struct tree_data *data)
{
    double *rows = wheel_rows_of(model, data->G0), *sizes = wheel_rows_of(model, data->G0_size);
    call_at(&model->wheel_functions->rows, data->q, data->u, data->z, data->p, rows, 0, 0);
    for (int i = 0; i < model->n_wheel_rows * model->nv; ++i) sizes[i] = fabs(rows[i]);
}

/* Values of the rows, and their derivatives by the wheel_rates. */
INTERNAL void evaluate_wheels(const struct tree_model *model, const struct tree_data *data,
                              const double *z)
{
    call_at(&model->wheel_functions->values, data->q, data->u, z, data->p, data->wheel_values,
            data->wheel_by_z, 0);
}

/* Bounds on the terms of the values. */
INTERNAL void measure_wheels(const struct tree_model *model, const struct tree_data *data,
                             const double *z)
{
    call_at(&model->wheel_functions->sizes, data->q, data->u, z, data->p, data->wheel_sizes, 0, 0);
}

/* Derivatives of the values by z, which were evaluated, into G1. */
INTERNAL void wheel_jacobian(const struct tree_model *model, const struct tree_data *data)
{
    double *rows = wheel_rows_of(model, data->G1);
    memset(rows, 0, sizeof(double) * model->n_wheel_rows * model->nv);
    for (int r = 0; r < model->n_wheel_rows; ++r)
        for (int i = 0; i < model->n_wheel_rates; ++i)
            rows[(size_t)model->nv * r + model->wheel_rates[i]] =
                data->wheel_by_z[model->n_wheel_rates * r + i];
}

/* Derivatives that the columns need where the last residual was taken. */
INTERNAL void start_wheel_columns(const struct tree_model *model, const struct tree_data *data)
{
    evaluate_wheels(model, data, data->z);
    call_at(&model->wheel_functions->derivatives, data->q, data->u, data->z, data->p,
            data->wheel_by_s, data->wheel_hessian, 0);
}

/* The rows w_z dz + w_s ds = 0 (T39) of `matrix`, with rows of length `count`, and their
 * right-hand sides in dz. */
INTERNAL void wheel_rows(const struct tree_model *model, const struct tree_data *data, int stride,
                         int count, double *matrix, double *dz)
{
    const int all = n_multipliers(model), first = n_closures(model), n = n_variables(model);
    for (int r = 0; r < model->n_wheel_rows; ++r) {
        double *row = matrix + (size_t)count * (first + r),
               *right = dz + (size_t)stride * (model->n_free + first + r);
        add_scaled(n, -1.0, data->wheel_by_s + (size_t)n * r, right);
        for (int i = 0; i < model->n_wheel_rates; ++i) {
            const double by = data->wheel_by_z[model->n_wheel_rates * r + i];
            const size_t v = model->wheel_rates[i];
            if (by == 0.0) continue;
            add_scaled(all, by, data->dz_by_lambda + all * v, row);
            add_scaled(stride, -by, dz + stride * v, right);
        }
    }
}

/* The momenta p of the state x become M v with A v = 0 and the same components X^T p (T40), by
 * impulses A^T sigma. Leaves the workspace at x. */
INTERNAL int project_momentum(const struct tree_model *model, const struct tree_data *data,
                              double *x)
{
    const int m = model->n_rolling, nv = model->nv, first = model->n_constraints - m;
    double *p = x + model->nq, *A = data->G1 + (size_t)nv * first, *v = data->dz,
           *sigma = data->projection;
    memcpy(data->momentum, p, sizeof(double) * nv);
    struct tree_data node = node_of(data);
    node.q = x;
    node.rho = p;
    start_turns(model, &node);
    call_at(&model->wheel_functions->rows, x, data->u, data->z, data->p,
            wheel_rows_of(model, data->G1), 0, 0);
    memset(data->trial, 0, sizeof(double) * (model->n_free + model->n_constraints));
    residual(model, &node, data->trial, 1.0);
    if (factor_with_forces(model, &node, NEWTON_EQUATION)) return SINGULAR;
    for (int i = 0; i < model->n_free; ++i) data->r[i] = p[i];
    solve_with_forces(model, &node, data->r, v);
    solve_joint_rows(model, &node, A, m, FROM_CONSTRAINED, data->Y);
    for (int r = 0; r < m; ++r) {
        add_low_rank(model, &node, data->Y + (size_t)nv * r);
        sigma[r] = -product(model->n_free, A + (size_t)nv * r, v);
    }
    for (int r = 0; r < m; ++r)
        for (int s = 0; s < m; ++s)
            data->schur[m * r + s] =
                product(model->n_free, A + (size_t)nv * r, data->Y + (size_t)nv * s);
    if (factor_dense(data->schur, m, m, data->schur_pivots)) return SINGULAR;
    solve_dense(data->schur, m, m, data->schur_pivots, sigma, sigma);
    for (int r = 0; r < m; ++r)
        for (int i = 0; i < model->n_free; ++i) p[i] -= A[(size_t)nv * r + i] * sigma[r];
    return CONVERGED;
}

/* X, D X and (X^T p)_q at the state x. */
static void basis_at(const struct tree_model *model, const struct tree_data *data, const double *x)
{
    call_at(&model->wheel_functions->basis, x, data->u, data->z, data->p, data->basis, data->dual,
            data->basis_by_q);
}

/* A row of derivatives by (dq, dp, ...) becomes one by (dq, dr, ...), with the changes dr of the
 * components: dp = D X (dr - (X^T p)_q dq) (T41). */
static void reduce_row(const struct tree_model *model, const struct tree_data *data,
                       const double *row, double *reduced)
{
    const int nv = model->nv, free = model->n_free, n = free - model->n_rolling;
    memcpy(reduced, row, sizeof(double) * nv);
    for (int i = 0; i < free; ++i)
        add_scaled(nv, -row[nv + i], data->basis_product + nv * i, reduced);
    memset(reduced + nv, 0, sizeof(double) * n);
    for (int i = 0; i < free; ++i) add_scaled(n, row[nv + i], data->dual + n * i, reduced + nv);
    memcpy(reduced + nv + n, row + nv + free, sizeof(double) * (n_variables(model) - nv - free));
}

/* Derivatives of the state after the step and of the unknowns, ab (2 nv, columns) and dz, in the
 * coordinates (dq, dr, dv_k) of states on their constraints (T42); x1: the state after the step,
 * whose momenta were those in data->momentum before they were projected. */
INTERNAL void admissible_columns(const struct tree_model *model, const struct tree_data *data,
                                 const double *x1, const double *ab, const double *dz,
                                 double *reduced_ab, double *reduced_dz)
{
    const int nv = model->nv, free = model->n_free, m = model->n_rolling, n = free - m,
              all = n_variables(model), columns = all - m;
    double *end = data->all_dz; /* not used after the unknowns */
    basis_at(model, data, data->q);
    memset(data->basis_product, 0, sizeof(double) * free * nv);
    for (int i = 0; i < free; ++i)
        for (int k = 0; k < n; ++k)
            add_scaled(nv, data->dual[n * i + k], data->basis_by_q + nv * k,
                       data->basis_product + nv * i);
    const int before = free + model->n_constraints - m,
              unknowns = free + n_multipliers(model) + model->n_slips;
    for (int i = 0, row = 0; i < unknowns; ++i) {
        if (i >= before && i < before + m) continue;
        reduce_row(model, data, dz + (size_t)all * i, reduced_dz + (size_t)columns * row++);
    }
    /* dq1, then dr1 = X^T dp1 + (X^T p1)_q dq1, then the velocities of prescribed coordinates */
    for (int i = 0; i < nv; ++i)
        reduce_row(model, data, ab + (size_t)all * i, reduced_ab + (size_t)columns * i);
    for (int i = free; i < nv; ++i)
        reduce_row(model, data, ab + (size_t)all * (nv + i),
                   reduced_ab + (size_t)columns * (nv + i - m));
    for (int i = 0; i < free; ++i)
        reduce_row(model, data, ab + (size_t)all * (nv + i), end + (size_t)columns * i);
    memcpy(data->end_state, x1, sizeof(double) * model->nq);
    memcpy(data->end_state + model->nq, data->momentum, sizeof(double) * nv);
    basis_at(model, data, data->end_state);
    for (int k = 0; k < n; ++k) {
        double *row = reduced_ab + (size_t)columns * (nv + k);
        memset(row, 0, sizeof(double) * columns);
        for (int i = 0; i < free; ++i)
            add_scaled(columns, data->basis[n * i + k], end + (size_t)columns * i, row);
        for (int i = 0; i < nv; ++i)
            add_scaled(columns, data->basis_by_q[nv * k + i], reduced_ab + (size_t)columns * i,
                       row);
    }
}

/* The unknowns with impulses of rolling, zero, behind those of holonomic constraints. */
INTERNAL void load_unknowns(const struct tree_model *model, const struct tree_data *data,
                            const double *z)
{
    const int before = model->n_free + model->n_constraints - model->n_rolling,
              after = model->n_impulses + model->n_slips;
    memcpy(data->unknowns, z, sizeof(double) * before);
    memset(data->unknowns + before, 0, sizeof(double) * model->n_rolling);
    memcpy(data->unknowns + before + model->n_rolling, z + before, sizeof(double) * after);
}

/* The same unknowns without these impulses. */
INTERNAL void store_unknowns(const struct tree_model *model, const struct tree_data *data,
                             double *z)
{
    const int before = model->n_free + model->n_constraints - model->n_rolling,
              after = model->n_impulses + model->n_slips;
    memcpy(z, data->unknowns, sizeof(double) * before);
    memcpy(z + before, data->unknowns + before + model->n_rolling, sizeof(double) * after);
}
