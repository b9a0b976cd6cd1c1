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

/* Near contacts are unknowns. Far ones, which open so fast that their impulses kappa / w_n hardly
 * change with the motion, get those of the velocities w that the last iteration foretells. */

/* The opening velocity (m/s) from which contacts are far: that of CONTACT_FAR kappa. */
static double far_speed(const struct tree_model *model, const struct tree_data *data)
{
    const double kappa = data->p[model->n_parameters - 2];
    double mass = 0.0;
    for (int i = 0; i < model->n_bodies; ++i) mass = fmax(mass, model->joints[i].carried_mass);
    return mass > 0.0 ? sqrt(CONTACT_FAR * kappa / mass) : INFINITY;
}

/* Contacts that open by velocities w of less than `speed` join the near ones; returns whether
 * there are new ones, whose impulses are not known. */
static int join_near(const struct tree_model *model, const struct tree_data *data, const double *w,
                     double speed)
{
    const struct contact_functions *f = model->contact_functions;
    struct contact_set *near = data->near;
    if (!f->add_near(f->sizes, w, data->friction, speed, near)) return 0;
    memset(data->far, 0, sizeof(double) * (model->n_impulses + model->n_slips));
    memset(data->impulses, 0, sizeof(double) * (2 * near->n_impulses + near->n_slips + 2));
    for (int i = 0; i < near->n_contacts; ++i) {
        const double *friction = data->friction + near->contacts[i];
        data->near_friction[i] = friction[0];
        data->near_friction[near->n_contacts + i] = friction[model->n_contacts];
    }
    return 1;
}

/* The others get impulses by their velocities w. */
static void set_far_impulses(const struct tree_model *model, const struct tree_data *data)
{
    const struct contact_functions *f = model->contact_functions;
    const int k = model->n_impulses;
    memcpy(data->last_far, data->far, sizeof(double) * k);
    f->far_impulses(f->sizes, data->near->near, data->w, data->friction,
                    data->p[model->n_parameters - 2], data->far, data->far + k);
}

/* r -= J^T x for the change of all impulses by s x. */
static void add_impulses(const struct tree_model *model, const struct tree_data *data, double s,
                         const double *x, double *r)
{
    const double *rows = impulse_rows(model, data);
    for (int k = 0; k < model->n_impulses; ++k)
        if (x[k] != 0.0) add_scaled(model->n_free, -s * x[k], rows + (size_t)model->nv * k, r);
}

/* Whether Y has all unknowns, not only the contact_rates: springs and dampers, constraints and
 * shared coordinates couple all joints. */
static int responds_everywhere(const struct tree_model *model)
{
    return n_force_rows(model, 0) || model->n_constraints || model->n_shared ||
           model->n_contact_rates == model->n_free;
}

/* Y of the near impulses, with the factors of the last iteration. */
static void respond_to_impulses(const struct tree_model *model, const struct tree_data *data)
{
    const struct contact_set *near = data->near;
    const size_t nv = model->nv, n = nv + model->n_constraints;
    const double *all = impulse_rows(model, data), *rows = all;
    double *right = data->free_right;
    if (near->n_impulses < model->n_impulses) {
        rows = data->near_rows;
        for (int r = 0; r < near->n_impulses; ++r)
            memcpy(data->near_rows + nv * r, all + nv * near->impulses[r], sizeof(double) * nv);
    }
    if (!model->n_constraints) {
        solve_joint_rows(model, data, rows, near->n_impulses,
                         responds_everywhere(model) ? FROM_CONSTRAINED : CONSTRAINED_JOINTS,
                         data->impulse_response);
        for (int r = 0; r < near->n_impulses; ++r)
            add_low_rank(model, data, data->impulse_response + n * r);
        return;
    }
    memset(right, 0, sizeof(double) * first_impulse(model));
    for (int r = 0; r < near->n_impulses; ++r) {
        for (int v = 0; v < model->n_free; ++v) right[v] = -rows[nv * r + v];
        kkt_solve(model, data, right, data->impulse_response + n * r);
    }
}

/* y += Y x for n_free + m numbers: by Y, or else by the tree's factors. */
static void add_response(const struct tree_model *model, const struct tree_data *data,
                         const double *x, double *y)
{
    const struct contact_set *near = data->near;
    const size_t nv = model->nv, n = nv + model->n_constraints;
    double *r = data->free_right;
    if (responds_everywhere(model)) {
        for (int i = 0; i < near->n_impulses; ++i)
            add_scaled(first_impulse(model), x[i], data->impulse_response + n * i, y);
        return;
    }
    memset(r, 0, sizeof(double) * model->n_free);
    for (int i = 0; i < near->n_impulses; ++i)
        add_scaled(model->n_free, -x[i], impulse_rows(model, data) + nv * near->impulses[i], r);
    solve_tree(model, data, r, data->free_column);
    add_scaled(model->n_free, 1.0, data->free_column, y);
}

/* w and its derivatives at the unknowns z. */
static void velocities_at(const struct tree_model *model, const struct tree_data *data,
                          const double *z)
{
    call_at(&model->contact_functions->values, data->q, data->u, z, data->p, data->w, data->w_y,
            data->friction);
}

/* w becomes that after a change dy of the other unknowns. */
static void foretell_velocities(const struct tree_model *model, const struct tree_data *data,
                                const double *dy)
{
    const int n = model->n_contact_rates;
    double *change = data->rate_change;
    for (int i = 0; i < n; ++i) change[i] = dy[model->contact_rates[i]];
    for (int r = 0; r < model->n_impulses; ++r)
        data->w[r] += product(n, data->w_y + (size_t)n * r, change);
}

/* G and b of w = G x + b (T37) of the near contacts at w, with the correction y0. */
static void contact_velocities(const struct tree_model *model, const struct tree_data *data,
                               const double *y0)
{
    const struct contact_set *near = data->near;
    const int k = near->n_impulses, n = model->n_contact_rates;
    const size_t stride = model->nv + model->n_constraints, padded = k + LANES;
    double *Y = data->rate_response, *change = data->rate_change;
    for (int i = 0; i < n; ++i) {
        const int v = model->contact_rates[i];
        change[i] = y0[v];
        for (int r = 0; r < k; ++r) Y[padded * i + r] = data->impulse_response[stride * r + v];
    }
    for (int r = 0; r < k; ++r) {
        const double *w_y = data->w_y + (size_t)n * near->impulses[r];
        data->contact_b[r] = data->w[near->impulses[r]] + product(n, w_y, change);
        /* the last lanes of a row are the first of the next one, which is set afterwards */
        double *row = data->contact_G + (size_t)k * r;
        memset(row, 0, sizeof(double) * k);
        for (int i = 0; i < n; ++i) {
            const double *response = Y + padded * i;
            if (w_y[i] == 0.0) continue;
            for (int c = 0; c < k; c += LANES)
                *(vn *)(row + c) += w_y[i] * *(const vn *)(response + c);
        }
    }
}

/* The impulses of the contact problem; near a solution, which z is, they are corrected only. */
static int contact_impulses(const struct tree_model *model, const struct tree_data *data,
                            int corrects, const double *z)
{
    const struct contact_functions *f = model->contact_functions;
    const struct contact_set *near = data->near;
    const double kappa = data->p[model->n_parameters - 2];
    const int k = near->n_impulses;
    double *x = data->impulses, *known = x + 2 * k + near->n_slips + 1;
    if (!k) return 0;
    if (!corrects) {
        for (int r = 0; r < k && *known == STARTS_AT_GAPS; ++r)
            x[k + r] = data->opening[near->impulses[r]];
        return f->find(near->part, data->contact_G, data->contact_b, data->near_friction, kappa, x,
                       data->impulse_room);
    }
    for (int r = 0; r < k; ++r) {
        x[r] = z[first_impulse(model) + near->impulses[r]];
        x[k + r] = data->w[near->impulses[r]];
    }
    for (int i = 0; i < near->n_slips; ++i)
        x[2 * k + i] = z[first_impulse(model) + model->n_impulses + near->slips[i]];
    return f->settle(near->part, data->contact_G, data->contact_b, data->near_friction, kappa, x,
                     data->impulse_room);
}

/* z gets the impulses and slip bounds. */
static void store_impulses(const struct tree_model *model, const struct tree_data *data, double *z)
{
    const struct contact_set *near = data->near;
    const double *x = data->impulses;
    double *to = z + first_impulse(model);
    memcpy(to, data->far, sizeof(double) * (model->n_impulses + model->n_slips));
    for (int r = 0; r < near->n_impulses; ++r) to[near->impulses[r]] = x[r];
    for (int i = 0; i < near->n_slips; ++i)
        to[model->n_impulses + near->slips[i]] = x[2 * near->n_impulses + i];
}

/* The largest size of n numbers. */
static double largest_size(const double *a, int n)
{
    double largest = 0.0;
    for (int i = 0; i < n; ++i) largest = fmax(largest, fabs(a[i]));
    return largest;
}

/* y becomes the correction at z under the far impulses. */
static int correction(const struct tree_model *model, const struct tree_data *data,
                      const double *z, double *y)
{
    kkt_residual(model, data, z, 0.0);
    add_impulses(model, data, 1.0, data->far, data->r);
    if (kkt_factor(model, data, NEWTON_EQUATION)) return SINGULAR;
    kkt_solve(model, data, data->r, y);
    return CONVERGED;
}

/* One iteration: z becomes that of the linearized tree with its impulses. change: the largest one
 * of y, relative to y and to the motion without impulses; infinite where contacts come near. */
static int iterate_contacts(const struct tree_model *model, const struct tree_data *data,
                            int corrects, double speed, double *z, double *change, double *size)
{
    const int n = first_impulse(model);
    double *dy = data->dz;
    if (correction(model, data, z, dy) != CONVERGED) return SINGULAR;
    velocities_at(model, data, z);
    respond_to_impulses(model, data);
    contact_velocities(model, data, dy);
    if (contact_impulses(model, data, corrects, z)) return NO_IMPULSES;
    const double without = largest_size(dy, n);
    add_response(model, data, data->impulses, dy);
    for (int i = 0; i < n; ++i) {
        if (!isfinite(dy[i])) return NO_IMPULSES;
        z[i] += dy[i];
    }
    *size = fmax(without, largest_size(z, n));
    *change = *size > 0.0 ? largest_size(dy, n) / *size : 0.0;
    store_impulses(model, data, z);
    if (data->near->n_contacts == model->n_contacts) return CONVERGED;
    foretell_velocities(model, data, dy);
    if (join_near(model, data, data->w, speed)) *change = INFINITY;
    set_far_impulses(model, data);
    return CONVERGED;
}

/* dy gets the part of the last change of the far impulses; returns whether that was small beside
 * motions of this size. */
static int settle_far(const struct tree_model *model, const struct tree_data *data, double size,
                      double *dy)
{
    const int n = first_impulse(model);
    double *r = data->free_right, *part = data->free_column;
    if (data->near->n_contacts == model->n_contacts) return 1;
    memset(r, 0, sizeof(double) * n);
    add_impulses(model, data, 1.0, data->far, r);
    add_impulses(model, data, -1.0, data->last_far, r);
    kkt_solve(model, data, r, part);
    add_scaled(n, 1.0, part, dy);
    return largest_size(part, n) <= CONTACT_SETTLED * size;
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

/* A correction dy of y with the factors and G of the last iteration, under its impulses, and b for
 * the impulses that go with it. */
static void correct_again(const struct tree_model *model, const struct tree_data *data, double *z,
                          double *dy)
{
    const struct contact_set *near = data->near;
    const int k = near->n_impulses;
    store_impulses(model, data, z);
    contact_residual(model, data, z, 0.0);
    kkt_solve(model, data, data->r, dy);
    velocities_at(model, data, z);
    foretell_velocities(model, data, dy);
    for (int r = 0; r < k; ++r)
        data->contact_b[r] = data->w[near->impulses[r]] -
                             product(k, data->contact_G + (size_t)k * r, data->impulses);
    if (near->n_contacts < model->n_contacts) set_far_impulses(model, data);
}

/* The impulses of the last iteration to round-off, and their part in y; `again`: with another
 * correction. change: the largest one of y, relative to `size`. */
static int settle_contacts(const struct tree_model *model, const struct tree_data *data, int again,
                           double size, double *z, double *change)
{
    const struct contact_functions *f = model->contact_functions;
    const struct contact_set *near = data->near;
    const int k = near->n_impulses, n = first_impulse(model);
    const double kappa = data->p[model->n_parameters - 2];
    double *more = data->impulse_change, *x = data->impulses, *dy = data->dz;
    memset(dy, 0, sizeof(double) * n);
    if (again) correct_again(model, data, z, dy);
    if (!settle_far(model, data, size, dy)) return STALLED;
    memcpy(more, x, sizeof(double) * k);
    if (k && f->settle(near->part, data->contact_G, data->contact_b, data->near_friction, kappa, x,
                       data->impulse_room))
        return NO_IMPULSES;
    for (int r = 0; r < k; ++r) more[r] = x[r] - more[r];
    add_response(model, data, more, dy);
    for (int i = 0; i < n; ++i) z[i] += dy[i];
    *change = size > 0.0 ? largest_size(dy, n) / size : 0.0;
    store_impulses(model, data, z);
    return f->is_inside(f->sizes, z) ? CONVERGED : NO_IMPULSES;
}

/* The solution after an iteration that changed y by `change`, which becomes that of the last
 * correction; `again`: by corrections with its factors and G, up to one that leaves round-off.
 * STALLED where they shrink slowly. */
static int correct_contacts(const struct tree_model *model, const struct tree_data *data,
                            int again, double size, double *z, double *change)
{
    for (;;) {
        double next = 0.0;
        const int status = settle_contacts(model, data, again, size, z, &next);
        if (status != CONVERGED || !again) return status;
        const double ratio = next / *change;
        *change = next;
        if (next <= CONTACT_SETTLED || next * ratio <= CONTACT_ROUND) return CONVERGED;
        if (!(ratio <= CONTACT_FAST)) return STALLED;
    }
}

/* The same after an iteration that is not foretold to be the last. Without impulses, `change` and
 * z (n_free + m) stay, and the next contact problem starts without known impulses. */
static int try_corrections(const struct tree_model *model, const struct tree_data *data,
                           double size, double *z, double *change)
{
    const struct contact_set *near = data->near;
    const size_t rates = sizeof(double) * first_impulse(model);
    const double before = *change;
    memcpy(data->start, z, rates);
    const int status = correct_contacts(model, data, 1, size, z, change);
    if (status != NO_IMPULSES) return status;
    *change = before;
    memcpy(z, data->start, rates);
    memset(data->impulses, 0, sizeof(double) * (2 * near->n_impulses + near->n_slips + 2));
    return STALLED;
}

/* Whether the impulses x_n = kappa / w_n of a start at rest, with w_n its gaps over h, stop most
 * of what closes under them: then they are those of the last step, and z gets their motion. */
static int holds_gaps(const struct tree_model *model, const struct tree_data *data, double *z)
{
    const struct contact_functions *f = model->contact_functions;
    const int n = first_impulse(model), k = model->n_impulses;
    double *x = data->last_far, *r = data->free_right, *dy = data->free_column, closing = 0.0,
           left = 0.0;
    if (!f->gap_impulses(f->sizes, data->opening, data->p[model->n_parameters - 2], x)) return 0;
    for (int i = 0; i < k; ++i) closing -= x[i] * data->w[i];
    memset(r, 0, sizeof(double) * n);
    add_impulses(model, data, 1.0, x, r);
    kkt_solve(model, data, r, dy);
    foretell_velocities(model, data, dy);
    for (int i = 0; i < k; ++i) left += x[i] * data->w[i];
    if (!(fabs(left) <= CONTACT_HELD * closing)) return 0;
    for (int i = 0; i < n && fabs(left) <= CONTACT_STILL * closing; ++i) z[i] += dy[i];
    return 1;
}

/* The contacts that are near at a start, and for one from zero the motion without them, or with
 * the impulses of the last step. */
static int start_of_contacts(const struct tree_model *model, const struct tree_data *data,
                             enum start start, double speed, double *z)
{
    const int k = model->n_impulses;
    int held = 0;
    memset(data->near->near, 0, sizeof(int) * model->n_contacts);
    memset(data->far, 0, sizeof(double) * (k + model->n_slips));
    velocities_at(model, data, z);
    if (start == FROM_ZERO) {
        memcpy(data->opening, data->w, sizeof(double) * k);
        join_near(model, data, data->opening, speed);
        if (correction(model, data, z, data->dz) != CONVERGED) return SINGULAR;
        foretell_velocities(model, data, data->dz);
        for (int i = 0; i < first_impulse(model); ++i) z[i] += data->dz[i];
    }
    join_near(model, data, data->w, speed);
    set_far_impulses(model, data);
    held = start == FROM_ZERO && holds_gaps(model, data, z);
    if (held)
        data->impulses[2 * data->near->n_impulses + data->near->n_slips + 1] = STARTS_AT_GAPS;
    return CONVERGED;
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

/* Iterations to the solution from the rates z, or from a solution that has to be corrected only.
 * The change after an iteration is foretold by those of the last two. */
static int find_contacts(const struct tree_model *model, const struct tree_data *data,
                         enum start start, double *z, double *info)
{
    const int corrects = start == FROM_CLOSE;
    const double speed = corrects ? INFINITY : far_speed(model, data);
    double last = INFINITY, change = INFINITY, size = 0.0;
    if (start_of_contacts(model, data, start, speed, z) != CONVERGED) return SINGULAR;
    for (int k = 0; k < CONTACT_OUTER_ITERATIONS; ++k) {
        int status = iterate_contacts(model, data, corrects, speed, z, &change, &size);
        ++info[0];
        if (status != CONVERGED) return status;
        const double next = isfinite(last) ? change * (change / last) * (change / last) : change;
        const int stalls = change <= CONTACT_STALLED && change >= last / 4.0;
        last = change;
        if (change <= CONTACT_SETTLED || stalls ||
            (change <= CONTACT_QUADRATIC && next <= CONTACT_FORETOLD)) {
            const int again = change > CONTACT_SETTLED && !stalls && next > CONTACT_ROUNDED;
            status = correct_contacts(model, data, again, size, z, &last);
        } else if (change <= CONTACT_CORRECTED)
            status = try_corrections(model, data, size, z, &last);
        else continue;
        if (status == CONVERGED) status = verify_contacts(model, data, z, info);
        if (status != STALLED) return status;
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
    return failed ? NO_IMPULSES : find_contacts(model, data, FROM_CLOSE, z, info);
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
    const int first =
        find_contacts(model, data, start == FROM_ZERO ? FROM_ZERO : FROM_GUESS, z, info);
    if (first == CONVERGED) return CONVERGED;
    return find_on_path(model, data, 0, z, info) == CONVERGED ? CONVERGED : first;
}
