/* Rows of the derivatives of a step with contacts: complementarity and maximum dissipation hold in
 * every column (T38).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* c (rows, n) = sum over the columns `of` of a (rows, count) of rows of b. */
static void gather_rows(int rows, int count, const double *a, const int32_t *of, const double *b,
                        int n, double *c)
{
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < count; ++i)
            if (a[count * r + i] != 0.0)
                add_scaled(n, a[count * r + i], b + (size_t)n * of[i], c + (size_t)n * r);
}

/* c (rows, n) += s a b for a (rows, l), b (l, n). */
static void add_products(int rows, int l, int n, double s, const double *a, const double *b,
                         double *c)
{
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < l; ++i)
            if (a[l * r + i] != 0.0)
                add_scaled(n, s * a[l * r + i], b + (size_t)n * i, c + (size_t)n * r);
}

/* Derivatives that the columns need: of the velocities by the variables, w_s (k, columns), and of
 * the impulses' forces by q. */
INTERNAL void start_contact_columns(const struct tree_model *model, const struct tree_data *data)
{
    const struct contact_functions *f = model->contact_functions;
    call_at(&f->values, data->q, data->u, data->z, data->p, data->w, data->w_y,
            data->friction);
    call_at(&f->derivatives, data->q, data->u, data->z, data->p, data->w_s, data->impulse_hessian,
            0);
}

/* The last rows of the equations of all multipliers: `matrix` (count, count), and their right-hand
 * sides in the last rows of dz; count = m + k + slips. */
INTERNAL void contact_rows(const struct tree_model *model, const struct tree_data *data,
                           int stride, double *matrix, double *dz)
{
    const int m = model->n_constraints, k = model->n_impulses, own = k + model->n_slips;
    const int all = m + k, count = m + own;
    double *by_unknown = data->by_impulses, *by_w = data->by_velocities;
    double *w_x = data->w_x, *w_s = data->w_s;
    double *right = dz + (size_t)stride * (model->n_free + m);
    model->contact_functions->equations(model->contact_functions->sizes,
                                        data->z + model->n_free + m, data->w, data->friction,
                                        by_unknown, by_w);
    /* w by the impulses and by the variables, through the unknowns y that they change */
    memset(w_x, 0, sizeof(double) * k * all);
    gather_rows(k, model->n_contact_rates, data->w_y, model->contact_rates, data->dz_by_lambda,
                all, w_x);
    gather_rows(k, model->n_contact_rates, data->w_y, model->contact_rates, dz, stride, w_s);
    for (int r = 0; r < own; ++r) {
        double *row = matrix + (size_t)count * (m + r);
        for (int i = 0; i < k; ++i) add_scaled(all, by_w[k * r + i], w_x + all * i, row);
        for (int i = 0; i < own; ++i) row[m + i] += by_unknown[own * r + i];
    }
    memset(right, 0, sizeof(double) * stride * own);
    add_products(own, k, stride, -1.0, by_w, w_s, right);
}

/* The last rows of r_z (n, n): those of complementarity and maximum dissipation. */
INTERNAL void contact_equations(const struct tree_model *model, const struct tree_data *data,
                                int n, double *r_z)
{
    const int k = model->n_impulses, own = k + model->n_slips, first = n - own;
    double *by_unknown = data->by_impulses, *by_w = data->by_velocities;
    model->contact_functions->equations(model->contact_functions->sizes, data->z + first, data->w,
                                        data->friction, by_unknown, by_w);
    for (int r = 0; r < own; ++r) {
        double *row = r_z + (size_t)n * (first + r);
        memcpy(row + first, by_unknown + own * r, sizeof(double) * own);
        for (int i = 0; i < k; ++i)
            for (int y = 0; y < model->n_contact_rates; ++y)
                row[model->contact_rates[y]] +=
                    by_w[k * r + i] * data->w_y[model->n_contact_rates * i + y];
    }
}
