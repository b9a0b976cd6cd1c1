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
#include "contact_constants.h"
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
    call_at(&model->contact_functions->rows, data->q, data->u, z, data->p, rows, 0, 0);
    for (int i = 0; i < model->n_impulses * model->nv; ++i) rows[i] = -rows[i];
}

/* Y of all impulses, with the factors of the last iteration. */
static void respond_to_impulses(const struct tree_model *model, const struct tree_data *data)
{
    const double *rows = impulse_rows(model, data);
    const size_t nv = model->nv, n = nv + model->n_constraints;
    double *right = data->free_right;
    if (!model->n_constraints) {
        solve_joint_rows(model, data, rows, model->n_impulses, 1, data->impulse_response);
        for (int r = 0; r < model->n_impulses; ++r)
            add_low_rank(model, data, data->impulse_response + n * r);
        return;
    }
    memset(right, 0, sizeof(double) * first_impulse(model));
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
    double *Y = data->rate_response, *own = data->rate_change;
    call_at(&model->contact_functions->values, data->q, data->u, z, data->p, data->w,
            data->w_y, data->friction);
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

/* The impulses of the contact problem; near a solution, which z is, they are corrected only. */
static int contact_impulses(const struct tree_model *model, const struct tree_data *data, int near,
                            const double *z)
{
    const struct contact_functions *f = model->contact_functions;
    const double kappa = data->p[model->n_parameters - 2];
    const int k = model->n_impulses;
    if (!near)
        return f->find(f->sizes, data->contact_G, data->contact_b, data->friction, kappa,
                       data->impulses, data->impulse_room);
    memcpy(data->impulses, z + first_impulse(model), sizeof(double) * k);
    memcpy(data->impulses + k, data->w, sizeof(double) * k);
    memcpy(data->impulses + 2 * k, z + first_impulse(model) + k, sizeof(double) * model->n_slips);
    return f->settle(f->sizes, data->contact_G, data->contact_b, data->friction, kappa,
                     data->impulses, data->impulse_room);
}

/* z gets the impulses and slip bounds. */
static void store_impulses(const struct tree_model *model, const struct tree_data *data, double *z)
{
    const int k = model->n_impulses;
    memcpy(z + first_impulse(model), data->impulses, sizeof(double) * k);
    memcpy(z + first_impulse(model) + k, data->impulses + 2 * k, sizeof(double) * model->n_slips);
}

/* One iteration: z becomes that of the linearized tree with its impulses. change: the largest one
 * of y, relative to y and to the motion without impulses. */
static int iterate_contacts(const struct tree_model *model, const struct tree_data *data, int near,
                            double *z, double *change)
{
    const int n = first_impulse(model);
    double *dy = data->dz, size = 0.0;
    kkt_residual(model, data, z, 0.0);
    if (kkt_factor(model, data, NEWTON_EQUATION)) return SINGULAR;
    kkt_solve(model, data, data->r, dy);
    respond_to_impulses(model, data);
    contact_velocities(model, data, z, dy);
    if (contact_impulses(model, data, near, z)) return NO_IMPULSES;
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
    store_impulses(model, data, z);
    return CONVERGED;
}

/* The impulses of the last iteration to round-off, and their part in y. */
static int settle_contacts(const struct tree_model *model, const struct tree_data *data, double *z)
{
    const struct contact_functions *f = model->contact_functions;
    const int k = model->n_impulses;
    const double kappa = data->p[model->n_parameters - 2];
    double *more = data->impulse_change, *x = data->impulses;
    memcpy(more, x, sizeof(double) * k);
    if (f->settle(f->sizes, data->contact_G, data->contact_b, data->friction, kappa, x,
                  data->impulse_room))
        return NO_IMPULSES;
    for (int r = 0; r < k; ++r) more[r] = x[r] - more[r];
    add_response(model, data, more, z);
    store_impulses(model, data, z);
    return f->is_inside(f->sizes, z) ? CONVERGED : NO_IMPULSES;
}

/* Iterations to the solution; near one, corrections only. */
static int find_contacts(const struct tree_model *model, const struct tree_data *data, int near,
                         double *z, double *info)
{
    double last = INFINITY, change = INFINITY;
    memset(data->impulses, 0, sizeof(double) * (2 * model->n_impulses + model->n_slips + 2));
    for (int k = 0; k < CONTACT_OUTER_ITERATIONS; ++k) {
        const int status = iterate_contacts(model, data, near, z, &change);
        ++info[0];
        if (status != CONVERGED) return status;
        if (change <= CONTACT_SETTLED || (change <= CONTACT_STALLED && change >= last / 4.0))
            return settle_contacts(model, data, z);
        last = change;
    }
    return EXHAUSTED;
}

/* A tree for steps that ask for it. */
struct free_tree {
    const struct tree_model *model;
    const struct tree_data *data;
};

/* r and r_y (T36) of the tree without impulses: r_y by the solutions of unit columns. */
static void free_equations(const void *tree, const double *z, double *r, double *r_y)
{
    const struct tree_model *model = ((const struct free_tree *)tree)->model;
    const struct tree_data *data = ((const struct free_tree *)tree)->data;
    const int n = first_impulse(model);
    double *inverse = data->free_inverse, *unit = data->free_right, *column = data->free_column;
    int *pivots = data->free_pivots;
    kkt_residual(model, data, z, 0.0);
    memcpy(r, data->r, sizeof(double) * n);
    if (!r_y) return;
    const int singular = kkt_factor(model, data, NEWTON_EQUATION);
    for (int k = 0; k < n && !singular; ++k) {
        for (int i = 0; i < n; ++i) unit[i] = -(i == k);
        kkt_solve(model, data, unit, column);
        for (int i = 0; i < n; ++i) inverse[n * i + k] = column[i];
    }
    const int failed = singular || factor_dense(inverse, n, n, pivots);
    for (int k = 0; k < n; ++k) {
        for (int i = 0; i < n; ++i) unit[i] = failed ? NAN : i == k;
        if (!failed) solve_dense(inverse, n, n, pivots, unit, unit);
        for (int i = 0; i < n; ++i) r_y[n * i + k] = unit[i];
    }
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

/* Whether the equations hold at z, where the last residual is taken. info: largest |r|, absolute
 * and relative. */
static int verify_contacts(const struct tree_model *model, const struct tree_data *data,
                           const double *z, double *info)
{
    contact_residual(model, data, z, largest_turn(model, data));
    info[1] = info[2] = 0.0;
    for (int i = 0; i < first_impulse(model); ++i) {
        info[1] = fmax(info[1], fabs(data->r[i]) / fmax(data->r_size[i], LEAST));
        info[2] = fmax(info[2], fabs(data->r[i]));
    }
    return info[1] <= ACCEPT ? CONVERGED : STALLED;
}

/* The unknowns z along the central path, or from those of a `guess`, to round-off. */
static int find_on_path(const struct tree_model *model, const struct tree_data *data, int guess,
                        double *z, double *info)
{
    const struct free_tree tree = {model, data};
    const struct free_step step = {
        model->contact_functions, model->nv,          model->n_free,  model->n_contact_rates,
        model->contact_rates,     data->impulse_room, free_equations, &tree,
    };
    const int failed =
        model->contact_functions->follow_path(&step, data->q, data->u, data->p, guess, z);
    if (failed || find_contacts(model, data, 1, z, info) != CONVERGED) return NO_IMPULSES;
    return verify_contacts(model, data, z, info);
}

/* A step with contacts: the unknowns into z, from a close guess of them all, from the rates of a
 * guess, or else from the end of the central path. The last residual is that of the solution.
 * info: iterations, relative error, largest |r|. */
INTERNAL int solve_contacts(const struct tree_model *model, const struct tree_data *data,
                            enum start start, double *z, double *info)
{
    const size_t size = sizeof(double) * first_impulse(model);
    double *rates = data->guess;
    memcpy(rates, z, size);
    if (start == FROM_ZERO) memset(rates, 0, size);
    info[0] = 0.0;
    info[1] = info[2] = NAN;
    start_contacts(model, data, z);
    if (start == FROM_CLOSE && find_on_path(model, data, 1, z, info) == CONVERGED)
        return CONVERGED;
    memcpy(z, rates, size);
    const int first = find_contacts(model, data, 0, z, info);
    if (first == CONVERGED) return verify_contacts(model, data, z, info);
    return find_on_path(model, data, 0, z, info) == CONVERGED ? CONVERGED : first;
}
