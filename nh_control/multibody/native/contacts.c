/* Impulses x of contacts in a step (T36, T37). Their rows J(q0) stand behind those of h, with the
 * opposite sign: r - Dh(q0)^T lam + J(q0)^T x. Newton's method on the tree has in each iteration a
 * contact problem of its velocities w, which the impulse library solves:
 *
 *     y0 = -r_y^{-1} r,   Y = -r_y^{-1} J^T,   w = w(y) + w_y (y0 + Y x),   dy = y0 + Y x,
 *
 * y the rates and the multipliers lam. Its last iteration has the solution to round-off, because
 * the equations are linear in x.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Where impulses begin among the unknowns. */
static int first_impulse(const struct tree_model *model)
{
    return model->n_free + model->n_constraints;
}

/* The rows of the impulses in G0. */
static double *impulse_rows(const struct tree_model *model, const struct tree_data *data)
{
    return data->G0 + (size_t)model->nv * model->n_constraints;
}

/* Once a step: -J(q0). */
static void start_contacts(const struct tree_model *model, const struct tree_data *data,
                           const double *z)
{
    double *rows = impulse_rows(model, data);
    model->contact_functions->rows(data->q, data->u, z, data->p, rows);
    for (int i = 0; i < model->n_impulses * model->nv; ++i) rows[i] = -rows[i];
}

/* Y of all impulses, with the factors of the last iteration. */
static void respond_to_impulses(const struct tree_model *model, const struct tree_data *data)
{
    const double *rows = impulse_rows(model, data);
    const size_t nv = model->nv, n = nv + model->n_constraints;
    double right[first_impulse(model)];
    if (!model->n_constraints) {
        solve_joint_rows(model, data, rows, model->n_impulses, 1, data->impulse_response);
        for (int r = 0; r < model->n_impulses; ++r)
            add_low_rank(model, data, data->impulse_response + n * r);
        return;
    }
    memset(right, 0, sizeof right);
    for (int r = 0; r < model->n_impulses; ++r) {
        for (int v = 0; v < model->n_free; ++v) right[v] = -rows[nv * r + v];
        kkt_solve(model, data, right, data->impulse_response + n * r);
    }
}

/* y += Y x for n_free + m numbers. */
static void add_response(const struct tree_model *model, const struct tree_data *data,
                         const double *x, double *y)
{
    const size_t n = model->nv + model->n_constraints;
    for (int r = 0; r < model->n_impulses; ++r)
        add_scaled(first_impulse(model), x[r], data->impulse_response + n * r, y);
}

/* G and b of w = G x + b (T37) at the unknowns z with the correction y0. */
static void contact_velocities(const struct tree_model *model, const struct tree_data *data,
                               const double *z, const double *y0)
{
    const int k = model->n_impulses, n = model->n_contact_rates;
    const size_t stride = model->nv + model->n_constraints;
    double Y[n * k], own[n];
    model->contact_functions->velocities(data->q, data->u, z, data->p, data->w, data->w_y,
                                         data->friction);
    for (int i = 0; i < n; ++i) {
        const int v = model->contact_rates[i];
        own[i] = y0[v];
        for (int r = 0; r < k; ++r) Y[k * i + r] = data->impulse_response[stride * r + v];
    }
    memset(data->contact_G, 0, sizeof(double) * k * k);
    for (int r = 0; r < k; ++r) {
        data->contact_b[r] = data->w[r] + product(n, data->w_y + n * r, own);
        for (int i = 0; i < n; ++i)
            if (data->w_y[n * r + i] != 0.0)
                add_scaled(k, data->w_y[n * r + i], Y + k * i, data->contact_G + k * r);
    }
}

/* One iteration: z becomes that of the linearized tree with its impulses. change: the largest one
 * of y, relative to y and to the motion without impulses. */
static int iterate_contacts(const struct tree_model *model, const struct tree_data *data,
                            double *z, double *change)
{
    const int n = first_impulse(model);
    const double kappa = data->p[model->n_parameters - 2];
    double *dy = data->dz, size = 0.0;
    kkt_residual(model, data, z, 0.0);
    if (kkt_factor(model, data, NEWTON_EQUATION)) return SINGULAR;
    kkt_solve(model, data, data->r, dy);
    respond_to_impulses(model, data);
    contact_velocities(model, data, z, dy);
    if (model->contact_functions->find(data->contact_G, data->contact_b, data->friction, kappa,
                                       data->impulses))
        return NO_IMPULSES;
    for (int i = 0; i < n; ++i) size = fmax(size, fabs(dy[i]));
    add_response(model, data, data->impulses, dy);
    *change = 0.0;
    for (int i = 0; i < n; ++i) {
        if (!isfinite(dy[i])) return NO_IMPULSES;
        z[i] += dy[i];
        *change = fmax(*change, fabs(dy[i]));
        size = fmax(size, fabs(z[i]));
    }
    *change = size > 0.0 ? *change / size : 0.0;
    return CONVERGED;
}

/* The impulses of the last iteration to round-off, and their part in y. */
static int settle_contacts(const struct tree_model *model, const struct tree_data *data, double *z)
{
    const int k = model->n_impulses;
    const double kappa = data->p[model->n_parameters - 2];
    double before[k], *x = data->impulses;
    memcpy(before, x, sizeof before);
    if (model->contact_functions->settle(data->contact_G, data->contact_b, data->friction, kappa,
                                         x) ||
        !model->contact_functions->is_inside(x))
        return NO_IMPULSES;
    for (int r = 0; r < k; ++r) before[r] = x[r] - before[r];
    add_response(model, data, before, z);
    memcpy(z + first_impulse(model), x, sizeof(double) * k);
    memcpy(z + first_impulse(model) + k, x + 2 * k, sizeof(double) * model->n_slips);
    return CONVERGED;
}

/* The residual with the impulses at z (T36), and bounds of its terms. */
static void contact_residual(const struct tree_model *model, const struct tree_data *data,
                             const double *z, double turns)
{
    const double *x = z + first_impulse(model), *rows = impulse_rows(model, data);
    kkt_residual(model, data, z, turns);
    memcpy(data->z, z,
           sizeof(double) * (first_impulse(model) + model->n_impulses + model->n_slips));
    for (int r = 0; r < model->n_impulses; ++r)
        for (int v = 0; v < model->n_free; ++v) {
            const double force = rows[(size_t)model->nv * r + v] * x[r];
            data->r[v] -= force;
            data->r_size[v] += fabs(force);
        }
}

/* A step with contacts: the unknowns into z, from the rates in it if the step is `warm`. The last
 * residual is that of the solution. info: iterations, relative error, largest |r|. */
INTERNAL int solve_contacts(const struct tree_model *model, const struct tree_data *data, int warm,
                            double *z, double *info)
{
    double last = INFINITY, change = INFINITY;
    int status = CONVERGED;
    info[0] = 0.0;
    info[1] = info[2] = NAN;
    if (!warm) memset(z, 0, sizeof(double) * first_impulse(model));
    start_contacts(model, data, z);
    memset(data->impulses, 0, sizeof(double) * (2 * model->n_impulses + model->n_slips + 2));
    for (; status == CONVERGED && info[0] < CONTACT_OUTER_ITERATIONS; ++info[0]) {
        status = iterate_contacts(model, data, z, &change);
        if (change <= CONTACT_SETTLED || (change <= CONTACT_STALLED && change >= last / 4.0))
            break;
        last = change;
    }
    if (status != CONVERGED) return status;
    if (!(change <= CONTACT_STALLED)) return EXHAUSTED;
    if ((status = settle_contacts(model, data, z)) != CONVERGED) return status;
    contact_residual(model, data, z, largest_turn(model, data));
    info[1] = info[2] = 0.0;
    for (int i = 0; i < first_impulse(model); ++i) {
        info[1] = fmax(info[1], fabs(data->r[i]) / fmax(data->r_size[i], LEAST));
        info[2] = fmax(info[2], fabs(data->r[i]));
    }
    return info[1] <= ACCEPT ? CONVERGED : STALLED;
}
