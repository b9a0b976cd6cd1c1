/* Columns of the derivatives by springs, dampers and wrenches, whose forces change with the motion
 * (T26, T27).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

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
static void add_force_columns(const struct tree_model *model, const struct tree_data *data,
                              const struct force_changes *p, const double *ab_rho,
                              const double *dz_rho, int stride_rho, int stride, double *ab,
                              double *dz)
{
    const int nv = model->nv, n = p->n, count = p->count;
    double *by = data->force_part;
    const double after = (1 - model->start_fraction) / model->start_fraction;
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < n; ++b)
            if (p->of[b] < model->n_free && p->F_z[n * a + b] != 0.0)
                add_scaled(stride, p->F_z[n * a + b], dz + (size_t)stride * p->of[b],
                           p->y + (size_t)stride * a);
    solve_columns(count, count, data->identity, p->equations, p->order, stride, p->y,
                  data->solved_columns);
    for (int row = 0; row < 2 * nv + model->n_free; ++row) {
        const double *rho = row < 2 * nv ? ab_rho + (size_t)stride_rho * row
                                         : dz_rho + (size_t)stride_rho * (row - 2 * nv);
        double *all =
            row < 2 * nv ? ab + (size_t)stride * row : dz + (size_t)stride * (row - 2 * nv);
        for (int a = 0; a < count; ++a) {
            by[a] = p->before ? 0.0 : rho[nv + p->of[a]];
            for (int b = 0; b < n && p->before; ++b)
                by[a] += p->before[n * a + b] * rho[nv + p->of[b]];
        }
        for (int a = 0; a < count; ++a) add_scaled(stride, by[a], p->y + (size_t)stride * a, all);
    }
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < n; ++b) {
            const double part = p->after ? p->after[n * a + b] : (a == b) * after;
            if (part != 0.0 && p->of[b] < model->n_free)
                add_scaled(stride, part, p->y + (size_t)stride * a,
                           ab + (size_t)stride * (nv + p->of[b]));
        }
}

/* The same in the columns by the multipliers, and in all. */
static void add_force_changes(const struct tree_model *model, const struct tree_data *data,
                              const struct force_changes *p, int stride, double *ab, double *dz)
{
    memset(p->y, 0, sizeof(double) * p->count * n_multipliers(model));
    add_force_columns(model, data, p, ab, dz, stride, n_multipliers(model), data->ab_by_lambda,
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
    add_force_columns(model, data, p, ab, dz, stride, stride, ab, dz);
}

/* Changes of the forces of springs, with the factors of Newton's equation (T26). */
INTERNAL void spring_columns(const struct tree_model *model, const struct tree_data *data,
                             int stride, double *ab, double *dz)
{
    const struct force_changes p = {n_force_rows(model, 1), model->nv,        data->identity,
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
INTERNAL int wrench_columns(const struct tree_model *model, const struct tree_data *data, int n,
                            int stride, double *ab, double *dz)
{
    const int nv = model->nv;
    int *place = data->rate_places, *of = data->supporting_rates, *order = data->rate_order;
    int count = 0;
    double *F_z = data->force_scratch, *F_q = F_z + n * n, *equations = F_q + n * n;
    memset(place, -1, sizeof(int) * nv);
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
    if (factor_dense(equations, n, n, order)) return SINGULAR;
    const struct force_changes p = {n, n, of, order, F_z, F_q, equations, 0, 0, equations + n * n};
    add_force_changes(model, data, &p, stride, ab, dz);
    return CONVERGED;
}
