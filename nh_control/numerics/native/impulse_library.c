/* The impulses of a model's contacts as a library, for steps that are not of generated code.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_problem.h"

/* `kept`: struct impulses, the guess where it is known. */
static struct contact_problem problem_of(const double *G, const double *b,
                                         const double *coefficients, double kappa)
{
    double speed = 0.0;
    for (int i = 0; i < N_IMPULSES; ++i) speed = fmax(speed, fabs(b[i]));
    return (struct contact_problem){
        G, b, coefficients, coefficients + N_CONTACTS, kappa, speed + 1e-9};
}

/* Solves w = G x + b with friction and bounds (2, N_CONTACTS); 1 where no solution was found. */
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

/* Whether a solution lies on the central path: the products of all pairs are positive, so signs of
 * the normal impulses and of psi are those of all numbers of the cones. */
int nh_is_inside(const struct impulses *kept)
{
    for (int i = 0; i < N_CONTACTS; ++i)
        if (BLOCKS[i].normal >= 0 && !(kept->x[BLOCKS[i].normal] > 0.0)) return 0;
    for (int i = 0; i < N_SLIPS; ++i)
        if (!(kept->psi[i] > 0.0)) return 0;
    return 1;
}

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
