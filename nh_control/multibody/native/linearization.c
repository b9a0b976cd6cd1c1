/* The derivatives of a step: columns of jacobian_columns.c, completed by wrenches, springs,
 * multipliers and shared coordinates.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Rows `at` of a matrix, `count` right-hand sides in every column, become their solutions. */
static void solve_columns(int count, const int *at, const double *factors, const int *order,
                          int stride, double *rows)
{
    for (int k = 0; k < stride; k += LANES) {
        const int lanes = stride - k < LANES ? stride - k : LANES;
        vn c[count];
        for (int r = 0; r < count; ++r) c[r] = simd_load(rows + (size_t)stride * at[r] + k, lanes);
        solve_dense_columns(factors, count, order, c);
        for (int r = 0; r < count; ++r) simd_store(rows + (size_t)stride * at[r] + k, lanes, c[r]);
    }
}

/* y (n) += s_r x_r, a sum over `count` rows x. */
static void add_rows(int count, const double *s, const double *const *x, int n, double *y)
{
    int k = 0;
    for (; k + LANES <= n; k += LANES) {
        vn total = simd_load(y + k, LANES);
        for (int r = 0; r < count; ++r) total += s[r] * simd_load(x[r] + k, LANES);
        simd_store(y + k, LANES, total);
    }
    for (; k < n; ++k)
        for (int r = 0; r < count; ++r) y[k] += s[r] * x[r][k];
}

/* `count` changes y of forces by the n coordinates `of`: F_z and F_q (count, n), the factors of
 * 1 - F_z C (T27), and the rows of these forces before and after the step; without these rows each
 * force acts on its own coordinate. */
struct force_changes {
    int count, n;
    const int *of, *order;
    const double *F_z, *F_q, *equations, *before, *after;
    double *y;
};

/* Adds the changes of forces to columns, as if they were changes of the momenta (T27). With C the
 * columns dz/drho, in ab_rho and dz_rho, times the rows of the forces, and dz0 without them,
 *
 *     y = F_z dz + F_q dq,   dz = dz0 + C y,   (1 - F_z C) y = F_z dz0 + F_q dq,
 *
 * where y is F_q dq before. */
static void add_force_columns(const struct tree_model *model, const struct force_changes *p,
                              const double *ab_rho, const double *dz_rho, int stride_rho,
                              int stride, double *ab, double *dz)
{
    const int nv = model->nv, n = p->n, count = p->count;
    const double after = (1 - model->start_fraction) / model->start_fraction;
    int own[count];
    for (int a = 0; a < count; ++a) {
        own[a] = a;
        for (int b = 0; b < n; ++b)
            if (p->of[b] < model->n_free && p->F_z[n * a + b] != 0.0)
                add_scaled(stride, p->F_z[n * a + b], dz + (size_t)stride * p->of[b],
                           p->y + (size_t)stride * a);
    }
    solve_columns(count, own, p->equations, p->order, stride, p->y);
    for (int row = 0; row < 2 * nv + model->n_free; ++row) {
        const double *rho = row < 2 * nv ? ab_rho + (size_t)stride_rho * row
                                         : dz_rho + (size_t)stride_rho * (row - 2 * nv);
        double *all =
                   row < 2 * nv ? ab + (size_t)stride * row : dz + (size_t)stride * (row - 2 * nv),
               by[count];
        for (int a = 0; a < count; ++a) {
            by[a] = p->before ? 0.0 : rho[nv + p->of[a]];
            for (int b = 0; b < n && p->before; ++b)
                by[a] += p->before[n * a + b] * rho[nv + p->of[b]];
        }
        for (int a = 0; a < count; ++a) add_scaled(stride, by[a], p->y + (size_t)stride * a, all);
    }
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < n; ++b) {
            const double by = p->after ? p->after[n * a + b] : (a == b) * after;
            if (by != 0.0 && p->of[b] < model->n_free)
                add_scaled(stride, by, p->y + (size_t)stride * a,
                           ab + (size_t)stride * (nv + p->of[b]));
        }
}

/* The same in the columns by the multipliers, and in all. */
static void add_force_changes(const struct tree_model *model, const struct tree_data *data,
                              const struct force_changes *p, int stride, double *ab, double *dz)
{
    memset(p->y, 0, sizeof(double) * p->count * n_multipliers(model));
    add_force_columns(model, p, ab, dz, stride, n_multipliers(model), data->ab_by_lambda,
                      data->dz_by_lambda);
    memset(p->y, 0, sizeof(double) * p->count * stride);
    for (int a = 0; a < p->count; ++a)
        for (int b = 0; b < p->n; ++b) {
            double *row = p->y + (size_t)stride * a;
            row[p->of[b]] = p->F_q[p->n * a + b];
            if (p->of[b] >= model->n_free)
                row[2 * model->nv + model->n_forces + p->of[b] - model->n_free] =
                    p->F_z[p->n * a + b];
        }
    add_force_columns(model, p, ab, dz, stride, stride, ab, dz);
}

/* Changes of the forces of springs, with the factors of Newton's equation (T26). */
static void spring_columns(const struct tree_model *model, const struct tree_data *data,
                           int stride, double *ab, double *dz)
{
    int of[model->nv];
    for (int v = 0; v < model->nv; ++v) of[v] = v;
    const struct force_changes p = {n_force_rows(model, 1), model->nv,        of,
                                    data->force_pivots,     data->force_by_z, data->force_by_q,
                                    data->force_matrix,     data->force_rows, data->force_rows1,
                                    data->force_scratch};
    add_force_changes(model, data, &p, stride, ab, dz);
}

/* Numbers the coordinates that carry a body, from `count` on; their number with it. */
static int number_supporting_rates(const struct tree_model *model, int body, int count, int *place,
                                   int *of)
{
    for (int b = body; b >= 0; b = model->joints[b].parent)
        for (int l = 0, v = model->joints[b].rate_index; l < model->joints[b].n_dof; ++l)
            if (place[v + l] < 0) of[count] = v + l, place[v + l] = count++;
    return count;
}

/* Changes of the generalized forces of wrenches and dampers on n coordinates (T27). */
static int wrench_columns(const struct tree_model *model, const struct tree_data *data, int n,
                          int stride, double *ab, double *dz)
{
    const int nv = model->nv;
    int place[nv], of[n], order[n], count = 0;
    double *F_z = data->force_scratch, *F_q = F_z + n * n, *equations = F_q + n * n;
    memset(place, -1, sizeof place);
    for (int i = 0; i < model->n_wrenches; ++i)
        count = number_supporting_rates(model, model->wrenches[i].body, count, place, of);
    for (int i = model->n_springs; i < model->n_springs + model->n_dampers; ++i)
        for (int end = 0; end < 2; ++end)
            count = number_supporting_rates(
                model, end ? model->point_forces[i].b : model->point_forces[i].a, count, place,
                of);
    wrench_derivatives(model, data, n, place, F_z, F_q);
    memset(equations, 0, sizeof(double) * n * n);
    for (int a = 0; a < n; ++a) {
        equations[n * a + a] = 1.0;
        if (of[a] >= model->n_free) { /* the motion of a prescribed one does not change */
            memset(F_z + n * a, 0, sizeof(double) * n);
            memset(F_q + n * a, 0, sizeof(double) * n);
        }
        for (int b = 0; b < n; ++b)
            for (int c = 0; c < n && of[b] < model->n_free; ++c)
                equations[n * a + c] -= F_z[n * a + b] * dz[(size_t)stride * of[b] + nv + of[c]];
    }
    if (factor_dense(equations, n, order)) return SINGULAR;
    const struct force_changes p = {n, n, of, order, F_z, F_q, equations, 0, 0, equations + n * n};
    add_force_changes(model, data, &p, stride, ab, dz);
    return CONVERGED;
}

/* `count` more unknowns in the rows `at` of dz, where their right-hand sides are, by the factors
 * of their equations; and the part of the first `acting` of them in the other rows: by_ab, by_dz.
 */
static void eliminate_unknowns(const struct tree_model *model, int count, int acting,
                               const int *at, const double *factors, const int *order,
                               const double *by_ab, const double *by_dz, int stride, double *ab,
                               double *dz)
{
    solve_columns(count, at, factors, order, stride, dz);
    const double *change[acting];
    for (int r = 0; r < acting; ++r) change[r] = dz + (size_t)stride * at[r];
    for (int row = 0; row < 2 * model->nv; ++row)
        add_rows(acting, by_ab + (size_t)acting * row, change, stride, ab + (size_t)stride * row);
    for (int row = 0; row < model->n_free; ++row)
        add_rows(acting, by_dz + (size_t)acting * row, change, stride, dz + (size_t)stride * row);
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
    const int nv = model->nv, m = model->n_constraints, all = n_multipliers(model);
    end_configuration(model, data);
    constraint_jacobian(model, data, data->q1, data->G1);
    memset(dz + (size_t)stride * model->n_free, 0, sizeof(double) * stride * m);
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
                              int stride, const double *w_s, double *ab, double *dz)
{
    const int all = n_multipliers(model), count = all + model->n_slips;
    memset(data->schur, 0, sizeof(double) * count * count);
    if (model->n_constraints) constraint_rows(model, data, stride, count, ab, data->schur, dz);
    if (model->n_impulses) contact_rows(model, data, stride, w_s, data->schur, dz);
    if (factor_dense(data->schur, count, data->schur_pivots)) return SINGULAR;
    int at[count];
    for (int r = 0; r < count; ++r) at[r] = model->n_free + r;
    eliminate_unknowns(model, count, all, at, data->schur, data->schur_pivots, data->ab_by_lambda,
                       data->dz_by_lambda, stride, ab, dz);
    return CONVERGED;
}

/* Changes of the coordinates that joints share (T23), for every column and those by the
 * multipliers. */
static void mimic_columns(const struct tree_model *model, const struct tree_data *data,
                          const int *body_of, int stride, double *ab, double *dz)
{
    const int n = model->n_shared;
    for (int a = 0; a < n; ++a)
        columns(model, data, &(struct column){body_of[data->shared_rates[a]], 0, BY_SHARED, 0}, 1,
                a, n, data->ab_by_shared, data->dz_by_shared);
    for (int a = 0; a < n; ++a) /* their own equations, known by the factors */
        memset(data->dz_by_shared + (size_t)n * data->shared_rates[a], 0, sizeof(double) * n);
    eliminate_unknowns(model, n, n, data->shared_rates, data->shared_matrix, data->shared_pivots,
                       data->ab_by_shared, data->dz_by_shared, stride, ab, dz);
    eliminate_unknowns(model, n, n, data->shared_rates, data->shared_matrix, data->shared_pivots,
                       data->ab_by_shared, data->dz_by_shared, n_multipliers(model),
                       data->ab_by_lambda, data->dz_by_lambda);
}

/* Number of variables: q, rho, forces, ends of prescribed coordinates. */
static int n_variables(const struct tree_model *model)
{
    return 3 * model->nv + model->n_forces - model->n_free;
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

/* The body of every rate. */
static void bodies_of(const struct tree_model *model, int *body_of)
{
    for (int i = 0; i < model->n_bodies; ++i)
        for (int l = 0; l < model->joints[i].n_dof; ++l) body_of[model->joints[i].v_index + l] = i;
}

/* The derivatives where the last residual was taken, in rows of length stride, the last `n`
 * columns by parameters, at fixed multipliers. */
static int free_derivatives(const struct tree_model *model, const struct tree_data *data,
                            int stride, int carriers, int n,
                            const struct parameter_derivative *numbers, double *ab, double *dz)
{
    const int nv = model->nv;
    if (factor_with_forces(model, data, LINEARIZATION)) return SINGULAR;
    if (model->n_constraints) evaluate_constraints(model, data, data->q);
    int body_of[model->n_rates];
    bodies_of(model, body_of);
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
    if (model->n_shared) mimic_columns(model, data, body_of, stride, ab, dz);
    if (model->n_springs) spring_columns(model, data, stride, ab, dz);
    return carriers ? wrench_columns(model, data, carriers, stride, ab, dz) : CONVERGED;
}

/* The same with multipliers that keep the constraints, and impulses that keep the contacts. */
static int derivatives(const struct tree_model *model, const struct tree_data *data, int stride,
                       int carriers, int n, const struct parameter_derivative *numbers, double *ab,
                       double *dz)
{
    double w_s[model->n_impulses * stride + 1];
    if (model->n_impulses) start_contact_columns(model, data, w_s);
    const int status = free_derivatives(model, data, stride, carriers, n, numbers, ab, dz);
    return status == CONVERGED && n_multipliers(model)
               ? multiplier_columns(model, data, stride, w_s, ab, dz)
               : status;
}

/* The derivatives where a step that failed took its last residual, in rows of length stride. */
int tree_derivatives(double *const *a, int stride)
{
    const struct tree tree = tree_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    return derivatives(model, data, stride, model->n_force_rates, 0, 0, a[AB], a[DZ]);
}

/* r_z where the last residual was taken, with the inverse of the block without multipliers in its
 * place, into a[R_Z]; a[AB] and a[DZ], in rows of length stride, are overwritten. */
void tree_equations(double *const *a, int stride)
{
    const struct tree tree = tree_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    const int first = model->n_free, all = n_multipliers(model), n = first + all + model->n_slips;
    double *r_z = a[R_Z], w_s[model->n_impulses * stride + 1];
    memset(r_z, 0, sizeof(double) * n * n);
    if (model->n_impulses) start_contact_columns(model, data, w_s);
    if (free_derivatives(model, data, stride, model->n_force_rates, 0, 0, a[AB], a[DZ]) !=
        CONVERGED)
        return;
    if (model->n_constraints) constraint_jacobian_by_z(model, data);
    for (int i = 0; i < first; ++i) {
        for (int v = 0; v < first; ++v)
            r_z[(size_t)n * i + v] = -a[DZ][(size_t)stride * i + model->nv + v];
        for (int r = 0; r < all; ++r)
            r_z[(size_t)n * i + first + r] = -data->G0[(size_t)model->nv * r + i];
        for (int r = 0; r < model->n_constraints; ++r)
            r_z[(size_t)n * (first + r) + i] = data->G1[(size_t)model->nv * r + i];
    }
    if (model->n_impulses) contact_equations(model, data, n, r_z);
}

/* A step and its derivatives A and B, into a[AB], and dz into a[DZ]. */
int nh_linearize(int (*step)(double *const *), double *const *a)
{
    const int status = step(a);
    if (status != CONVERGED) return status;
    const struct tree tree = tree_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    if (settled(model, a[INFO])) residual(model, data, a[Z], 0.0);
    return derivatives(model, data, n_variables(model), model->n_force_rates, 0, 0, a[AB], a[DZ]);
}

/* The same with the parameters among the variables. */
int tree_linearize_parameters(int (*step)(double *const *), double *const *a)
{
    const int status = step(a);
    if (status != CONVERGED) return status;
    const struct tree tree = tree_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    const int n = model->n_parameters;
    if (settled(model, a[INFO])) residual(model, data, a[Z], 0.0);
    return derivatives(model, data, n_variables(model) + n, model->n_force_rates, n,
                       (const struct parameter_derivative *)a[SLOPES], a[AB], a[DZ]);
}
