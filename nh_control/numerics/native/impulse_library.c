/* The contacts of a model as a library, for steps that are not of generated code: impulses, and
 * the path to them. `call_rows` and `call_velocities` are generated.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "impulse_library.h"
#include "contact_path.h"

/* Solves w = G x + b with friction and bounds (2, N_CONTACTS), from the impulses `kept` where they
 * are known; 1 where no solution was found. */
int nh_find_impulses(const double *G, const double *b, const double *coefficients, double kappa,
                     struct impulses *kept)
{
    const struct contact_problem problem = problem_of(G, b, coefficients, kappa);
    return !find_impulses(&problem, kept);
}

/* Takes a solution to round-off; 1 where it does not settle. */
int nh_settle_impulses(const double *G, const double *b, const double *coefficients, double kappa,
                       struct impulses *kept)
{
    const struct contact_problem problem = problem_of(G, b, coefficients, kappa);
    return !settle_impulses(&problem, kept);
}

/* Whether a solution lies on the central path, as `is_inside`. */
int nh_is_inside(const double *z) { return is_inside(z); }

/* Derivatives of the rows of (S18), in the order of (x, psi), at x with psi behind it: by these
 * unknowns (n, n) and by w (n, N_IMPULSES), n = N_IMPULSES + N_SLIPS. */
void nh_impulse_equations(const double *x, const double *w, const double *coefficients,
                          double *by_unknown, double *by_w)
{
    enum { ALL = N_IMPULSES + N_SLIPS };
    memset(by_unknown, 0, sizeof(double) * ALL * ALL);
    memset(by_w, 0, sizeof(double) * ALL * N_IMPULSES);
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal, t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        const int last = N_IMPULSES + BLOCKS[i].psi;
        if (n >= 0) { /* x_n w_n = kappa */
            by_unknown[ALL * n + n] = w[n];
            by_w[N_IMPULSES * n + n] = x[n];
        }
        if (!k) continue;
        const double psi = x[last], mu = coefficients[i];
        const double beta = n >= 0 ? mu * x[n] : coefficients[N_CONTACTS + i];
        for (int j = t; j < t + k; ++j) { /* beta s + psi g = 0 */
            by_unknown[ALL * j + j] = psi;
            by_unknown[ALL * j + last] = x[j];
            if (n >= 0) by_unknown[ALL * j + n] = mu * w[j];
            by_w[N_IMPULSES * j + j] = beta;
            by_unknown[ALL * last + j] = w[j];
            by_w[N_IMPULSES * last + j] = x[j];
        }
        by_unknown[ALL * last + last] = beta; /* beta psi + g . s = kappa */
        if (n >= 0) by_unknown[ALL * last + n] = mu * psi;
    }
}

/* The rows of (S18), in the order of (x, psi). */
static void impulse_rows(const double *x, const double *w, const double *coefficients,
                         double kappa, double *r)
{
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal, t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        const int last = N_IMPULSES + BLOCKS[i].psi;
        if (n >= 0) r[n] = x[n] * w[n] - kappa;
        if (!k) continue;
        const double beta = n >= 0 ? coefficients[i] * x[n] : coefficients[N_CONTACTS + i];
        for (int j = t; j < t + k; ++j) r[j] = beta * w[j] + x[last] * x[j];
        r[last] = beta * x[last] + dot(k, x + t, w + t) - kappa;
    }
}

/* The step whose path is followed in this thread. */
static _Thread_local const struct free_step *FREE_STEP;

/* For follow_path: velocities w at the contacts, w by the first unknowns (N_IMPULSES, N_FIRST),
 * and the coefficients of friction and bounds. */
int call_contacts(const double *x, const double *u, const double *z, const double *p, double *w,
                  double *w_y, double *coefficients)
{
    double by_rates[N_IMPULSES * N_CONTACT_RATES];
    const int failed = call_velocities(x, u, z, p, w, by_rates, coefficients);
    memset(w_y, 0, sizeof(double) * N_IMPULSES * N_FIRST);
    for (int i = 0; i < N_IMPULSES; ++i)
        for (int k = 0; k < N_CONTACT_RATES; ++k)
            w_y[N_FIRST * i + CONTACT_RATES[k]] = by_rates[N_CONTACT_RATES * i + k];
    return failed;
}

/* For follow_path: the rows of the step (N_Z), those of the tree with the impulses and (S18). */
int call_residual(const double *x, const double *u, const double *z, const double *p, double *r)
{
    double w[N_IMPULSES], by_rates[N_IMPULSES * N_CONTACT_RATES], coefficients[2 * N_CONTACTS];
    double J[N_IMPULSES * N_TANGENTS];
    FREE_STEP->equations(FREE_STEP->tree, z, r, 0);
    call_rows(x, u, z, p, J);
    for (int i = 0; i < N_FREE; ++i)
        for (int k = 0; k < N_IMPULSES; ++k) r[i] += J[N_TANGENTS * k + i] * z[N_FIRST + k];
    call_velocities(x, u, z, p, w, by_rates, coefficients);
    impulse_rows(z + N_FIRST, w, coefficients, p[N_P - 2], r + N_FIRST);
    return 0;
}

/* For follow_path: the derivatives of these rows by the unknowns (N_Z, N_Z). */
int call_jacobian(const double *x, const double *u, const double *z, const double *p, double *r_z)
{
    enum { ALL = N_IMPULSES + N_SLIPS };
    double w[N_IMPULSES], w_y[N_IMPULSES * N_FIRST], coefficients[2 * N_CONTACTS], r[N_FIRST];
    double J[N_IMPULSES * N_TANGENTS], r_y[N_FIRST * N_FIRST];
    double by_unknown[ALL * ALL], by_w[ALL * N_IMPULSES];
    memset(r_z, 0, sizeof(double) * N_Z * N_Z);
    FREE_STEP->equations(FREE_STEP->tree, z, r, r_y);
    call_rows(x, u, z, p, J);
    call_contacts(x, u, z, p, w, w_y, coefficients);
    nh_impulse_equations(z + N_FIRST, w, coefficients, by_unknown, by_w);
    for (int i = 0; i < N_FIRST; ++i) {
        memcpy(r_z + (size_t)N_Z * i, r_y + (size_t)N_FIRST * i, sizeof(double) * N_FIRST);
        for (int k = 0; k < N_IMPULSES && i < N_FREE; ++k)
            r_z[(size_t)N_Z * i + N_FIRST + k] = J[N_TANGENTS * k + i];
    }
    for (int i = 0; i < ALL; ++i) {
        double *row = r_z + (size_t)N_Z * (N_FIRST + i);
        memcpy(row + N_FIRST, by_unknown + ALL * i, sizeof(double) * ALL);
        for (int k = 0; k < N_IMPULSES; ++k)
            for (int y = 0; y < N_FIRST; ++y)
                row[y] += by_w[N_IMPULSES * i + k] * w_y[N_FIRST * k + y];
    }
    return 0;
}

/* Follows the central path of a step to the unknowns z (N_Z), close to a solution, or returns to
 * it from those of a `guess`; 1 where it does not lead there. */
int nh_follow_path(const struct free_step *step, const double *x, const double *u, const double *p,
                   int guess, double *z)
{
    double r_z[N_Z * N_Z];
    FREE_STEP = step;
    if (!guess) return !follow_path(x, u, p, z, r_z);
    return !(return_to_path(x, u, p, 1, z) || return_to_path(x, u, p, 0, z));
}
