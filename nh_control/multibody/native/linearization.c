/* The derivatives of a step: columns of jacobian_columns.c, completed by those of forces,
 * multipliers, impulses and shared coordinates.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* `count` more unknowns in the rows `at` of dz, where their right-hand sides are, by the factors
 * of their equations, which have a rank; and the part of the first `acting` of them in the other
 * rows: by_ab, by_dz. */
static void eliminate_unknowns(const struct tree_model *model, const struct tree_data *data,
                               int count, int rank, int acting, const int *at,
                               const double *factors, const int *order, const double *by_ab,
                               const double *by_dz, int stride, double *ab, double *dz)
{
    solve_columns(count, rank, at, factors, order, stride, dz, data->solved_columns);
    for (int row = 0; row < 2 * model->nv; ++row)
        add_rows(acting, by_ab + (size_t)acting * row, at, dz, stride, ab + (size_t)stride * row);
    for (int row = 0; row < model->n_free; ++row)
        add_rows(acting, by_dz + (size_t)acting * row, at, dz, stride, dz + (size_t)stride * row);
}

/* Columns by the multipliers and impulses, into data->ab_by_lambda and data->dz_by_lambda. */
static void columns_by_multipliers(const struct tree_model *model, const struct tree_data *data)
{
    const int m = n_multipliers(model);
    for (int r = 0; r < m; r += LANES) {
        struct column s[LANES];
        const int count = m - r < LANES ? m - r : LANES;
        for (int l = 0; l < count; ++l) s[l] = (struct column){-1, r + l, BY_MULTIPLIER, 0};
        columns(model, data, s, count, r, m, data->ab_by_lambda, data->dz_by_lambda);
    }
}

/* The rows of Dh(q1) dq1 = 0: `matrix`, with rows of length `count`, and their right-hand sides in
 * dz (T34). */
static void constraint_rows(const struct tree_model *model, const struct tree_data *data,
                            int stride, int count, const double *ab, double *matrix, double *dz)
{
    const int nv = model->nv, m = n_closures(model), all = n_multipliers(model);
    if (m) {
        end_configuration(model, data);
        constraint_jacobian(model, data, data->q1, data->G1);
    }
    memset(dz + (size_t)stride * model->n_free, 0,
           sizeof(double) * stride * model->n_constraints);
    if (model->n_wheel_rows) wheel_rows(model, data, stride, count, matrix, dz);
    for (int r = 0; r < m; ++r)
        for (int v = 0; v < nv; ++v) {
            const double g = data->G1[(size_t)nv * r + v];
            if (g == 0.0) continue;
            add_scaled(all, g, data->ab_by_lambda + (size_t)all * v, matrix + (size_t)count * r);
            add_scaled(stride, -g, ab + (size_t)stride * v,
                       dz + (size_t)stride * (model->n_free + r));
        }
}

/* Multipliers that keep the constraints for every column (T34), impulses and slip bounds that keep
 * the contacts (T38), and their part in the other rows. */
static int multiplier_columns(const struct tree_model *model, const struct tree_data *data,
                              int stride, double *ab, double *dz)
{
    const int all = n_multipliers(model), count = all + model->n_slips;
    const int rank = count - model->n_redundant;
    int *at = data->multiplier_rows;
    memset(data->schur, 0, sizeof(double) * count * count);
    if (model->n_constraints) constraint_rows(model, data, stride, count, ab, data->schur, dz);
    if (model->n_impulses) contact_rows(model, data, stride, data->schur, dz);
    if (factor_dense(data->schur, count, rank, data->schur_pivots)) return SINGULAR;
    for (int r = 0; r < count; ++r) at[r] = model->n_free + r;
    eliminate_unknowns(model, data, count, rank, all, at, data->schur, data->schur_pivots,
                       data->ab_by_lambda, data->dz_by_lambda, stride, ab, dz);
    return CONVERGED;
}

/* The body of every rate. */
static const int *bodies_of(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i)
        for (int l = 0; l < model->joints[i].n_dof; ++l)
            data->body_of[model->joints[i].v_index + l] = i;
    return data->body_of;
}

/* Columns by the coordinates that joints share, into data->ab_by_shared and data->dz_by_shared. */
INTERNAL void columns_by_shared(const struct tree_model *model, const struct tree_data *data)
{
    const int n = model->n_shared, *body_of = bodies_of(model, data);
    for (int a = 0; a < n; ++a)
        columns(model, data, &(struct column){body_of[data->shared_rates[a]], 0, BY_SHARED, 0}, 1,
                a, n, data->ab_by_shared, data->dz_by_shared);
    for (int a = 0; a < n; ++a) /* their own equations, known by the factors */
        memset(data->dz_by_shared + (size_t)n * data->shared_rates[a], 0, sizeof(double) * n);
}

/* Changes of these coordinates (T23) for every column, and their part in the other rows. */
INTERNAL void eliminate_shared(const struct tree_model *model, const struct tree_data *data,
                               int stride, double *ab, double *dz)
{
    const int n = model->n_shared;
    eliminate_unknowns(model, data, n, n, n, data->shared_rates, data->shared_matrix,
                       data->shared_pivots, data->ab_by_shared, data->dz_by_shared, stride, ab,
                       dz);
}

/* Columns by the parameters but h (T33), into columns `first` ... */
static void columns_by_parameters(const struct tree_model *model, const struct tree_data *data,
                                  const struct parameter_derivative *slope, int count, int first,
                                  int stride, double *ab, double *dz)
{
    for (int from = 0; from < count; from += LANES) {
        struct column s[LANES];
        const int lanes = count - from < LANES ? count - from : LANES;
        for (int l = 0; l < lanes; ++l) {
            s[l] = (struct column){-1, from + l, BY_NUMBERS, slope};
            while (slope->parameter == from + l) ++slope;
        }
        columns(model, data, s, lanes, first + from, stride, ab, dz);
    }
}

/* The derivatives where the last residual was taken, in rows of length stride, the last `n`
 * columns by parameters, at fixed multipliers. */
static int free_derivatives(const struct tree_model *model, const struct tree_data *data,
                            int stride, int carriers, int n,
                            const struct parameter_derivative *numbers, double *ab, double *dz)
{
    const int nv = model->nv;
    if (factor_with_forces(model, data, LINEARIZATION)) return SINGULAR;
    if (n_closures(model)) evaluate_constraints(model, data, data->q);
    if (model->n_wheel_rows) start_wheel_columns(model, data);
    const int *body_of = bodies_of(model, data);
    columns_by(model, data, body_of, 0, nv + model->n_free, stride, ab, dz);
    for (int row = 0; row < 2 * nv; ++row)
        memset(ab + (size_t)stride * row + nv + model->n_free, 0,
               sizeof(double) * (nv - model->n_free));
    for (int row = 0; row < model->n_free; ++row)
        memset(dz + (size_t)stride * row + nv + model->n_free, 0,
               sizeof(double) * (nv - model->n_free));
    columns_by_forces(model, data, stride, ab, dz);
    columns_by_wrenches(model, data, stride, ab, dz);
    columns_by(model, data, body_of, 2 * nv + model->n_forces,
               3 * nv + model->n_forces - model->n_free, stride, ab, dz);
    if (n) {
        columns_by_parameters(model, data, numbers, n - 1, stride - n, stride, ab, dz);
        columns(model, data, &(struct column){-1, 0, BY_STEP, 0}, 1, stride - 1, stride, ab, dz);
    }
    columns_by_multipliers(model, data);
    if (model->n_shared) {
        columns_by_shared(model, data);
        eliminate_shared(model, data, stride, ab, dz);
        eliminate_shared(model, data, n_multipliers(model), data->ab_by_lambda,
                         data->dz_by_lambda);
    }
    if (model->n_springs) spring_columns(model, data, stride, ab, dz);
    return carriers ? wrench_columns(model, data, carriers, stride, ab, dz) : CONVERGED;
}

/* The same with multipliers that keep the constraints, and impulses that keep the contacts. */
static int derivatives(const struct tree_model *model, const struct tree_data *data, int stride,
                       int carriers, int n, const struct parameter_derivative *numbers, double *ab,
                       double *dz)
{
    if (model->n_impulses) start_contact_columns(model, data);
    const int status = free_derivatives(model, data, stride, carriers, n, numbers, ab, dz);
    return status == CONVERGED && n_multipliers(model)
               ? multiplier_columns(model, data, stride, ab, dz)
               : status;
}

/* The derivatives where a step that failed took its last residual, in rows of length stride. */
int tree_derivatives(double *const *a, int stride)
{
    const struct tree tree = tree_of(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    joint_endpoints(model, data);
    return derivatives(model, data, stride, model->n_force_rates, 0, 0, a[AB], a[DZ]);
}

/* r_z where the last residual was taken, of all unknowns of the kernel, with the inverse of the
 * block without multipliers in its place. */
void tree_equations(double *const *a, double *r_z)
{
    const struct tree tree = tree_of(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    const int first = model->n_free, all = n_multipliers(model), n = first + all + model->n_slips,
              stride = n_variables(model);
    double *ab = data->all_ab, *dz = data->all_dz;
    memset(r_z, 0, sizeof(double) * n * n);
    joint_endpoints(model, data);
    if (model->n_impulses) start_contact_columns(model, data);
    if (free_derivatives(model, data, stride, model->n_force_rates, 0, 0, ab, dz) != CONVERGED)
        return;
    if (model->n_constraints) constraint_jacobian_by_z(model, data);
    for (int i = 0; i < first; ++i) {
        for (int v = 0; v < first; ++v)
            r_z[(size_t)n * i + v] = -dz[(size_t)stride * i + model->nv + v];
        for (int r = 0; r < all; ++r)
            r_z[(size_t)n * i + first + r] = -data->G0[(size_t)model->nv * r + i];
        for (int r = 0; r < model->n_constraints; ++r)
            r_z[(size_t)n * (first + r) + i] = data->G1[(size_t)model->nv * r + i];
    }
    if (model->n_impulses) contact_equations(model, data, n, r_z);
}

/* The basis X (n_free, n_free - n_rolling) of the admissible velocities at the state of a step. */
void tree_basis(double *const *a, double *basis)
{
    const struct tree tree = tree_of(a);
    const double *z = tree.data.unknowns;
    call_at(&tree.model.wheel_functions->basis, a[X], a[U], z, a[P], basis, 0, 0);
}

/* A step and its derivatives A and B, into a[AB], and dz into a[DZ], where the step took its last
 * residual: at its solution, or, if it settled, before a correction of round-off. */
int tree_linearize(int (*step)(double *const *), double *const *a)
{
    const int status = step(a);
    if (status != CONVERGED) return status;
    const struct tree tree = tree_of(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    const int n = n_variables(model);
    if (!model->n_rolling)
        return derivatives(model, data, n, model->n_force_rates, 0, 0, a[AB], a[DZ]);
    /* the projection of momenta has left the workspace at the state after the step */
    start_turns(model, data);
    kkt_residual(model, data, data->unknowns, 0.0);
    const int failed = derivatives(model, data, n, model->n_force_rates, 0, 0, data->all_ab,
                                   data->all_dz);
    if (failed != CONVERGED) return failed;
    admissible_columns(model, data, a[X1], data->all_ab, data->all_dz, a[AB], a[DZ]);
    return CONVERGED;
}

/* The same with the parameters among the variables. */
int tree_linearize_parameters(int (*step)(double *const *), double *const *a)
{
    const int status = step(a);
    if (status != CONVERGED) return status;
    const struct tree tree = tree_of(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    const int n = model->n_parameters;
    return derivatives(model, data, n_variables(model) + n, model->n_force_rates, n,
                       (const struct parameter_derivative *)a[SLOPES], a[AB], a[DZ]);
}
