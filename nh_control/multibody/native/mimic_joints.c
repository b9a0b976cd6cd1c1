/* Joints that follow others by a ratio of their coordinates (section 6): the tree's factors leave
 * the coordinates s that joints share as if they were prescribed. With K of Newton's equation and
 * t the other coordinates (T22, T23),
 *
 *     dz_t = -K_tt^{-1} r_t + Y dz_s,   Y = -K_tt^{-1} K_ts,
 *     (K_ss + K_st Y) dz_s = -(r_s - K_st K_tt^{-1} r_t).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Y, and the factors of K_ss + K_st Y; 1 if it is singular. */
static int factor_mimic_joints(const struct tree_model *model, const struct tree_data *data)
{
    const int n = model->n_shared;
    memset(data->shared_right, 0, sizeof(double) * model->n_free);
    for (int a = 0; a < n; ++a) {
        double *y = data->Y_shared + (size_t)model->n_rates * a;
        memset(y, 0, sizeof(double) * model->n_rates);
        memset(data->shared_row, 0, sizeof(double) * model->n_rates);
        y[data->shared_rates[a]] = 1.0;
        solve_tree(model, data, data->shared_right, y);
        for (int b = 0; b < n; ++b)
            data->shared_matrix[n * b + a] = data->shared_row[data->shared_rates[b]];
    }
    return factor_dense(data->shared_matrix, n, n, data->shared_pivots);
}

/* Factors of all joints; 1 if they are singular. */
INTERNAL int factor_joints(const struct tree_model *model, const struct tree_data *data,
                           enum equation equation)
{
    if (factor_tree(model, data, equation)) return 1;
    return model->n_shared ? factor_mimic_joints(model, data) : 0;
}

/* dz = -r_z^{-1} r (T22, T23). */
INTERNAL void solve_joints(const struct tree_model *model, const struct tree_data *data,
                           const double *r, double *dz)
{
    const int n = model->n_shared;
    double *right = data->shared_right;
    if (n) memset(data->shared_row, 0, sizeof(double) * model->n_rates);
    for (int a = 0; a < n; ++a) dz[data->shared_rates[a]] = 0.0;
    solve_tree(model, data, r, dz);
    if (!n) return;
    for (int a = 0; a < n; ++a)
        right[a] = -r[data->shared_rates[a]] - data->shared_row[data->shared_rates[a]];
    solve_dense(data->shared_matrix, n, n, data->shared_pivots, right, right);
    for (int a = 0; a < n; ++a)
        for (int v = 0; v < model->n_free; ++v)
            dz[v] += data->Y_shared[(size_t)model->n_rates * a + v] * right[a];
}

/* Rows of shared coordinates, to which columns of several joints are added. */
INTERNAL void clear_shared_columns(const struct tree_model *model, const struct tree_data *data,
                                   int count, int first, int stride, double *ab, double *dz)
{
    for (int a = 0; a < model->n_shared; ++a) {
        memset(ab + (size_t)stride * data->shared_rates[a] + first, 0, sizeof(double) * count);
        memset(ab + (size_t)stride * (model->nv + data->shared_rates[a]) + first, 0,
               sizeof(double) * count);
        memset(dz + (size_t)stride * data->shared_rates[a] + first, 0, sizeof(double) * count);
    }
}
