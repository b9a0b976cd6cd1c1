/* Damped simplified Newton iteration for r(x, u, z, p) = 0 around the functions CasADi generates;
 * the algorithm of newton.py, which documents it. system.h has the sizes and the functions, and
 * definitions.h the constants of newton.py. */
#include <float.h>

#include "linear_algebra.h"

/* s at z, at least `dropped`. */
static void row_sizes(const double *J, const double *z, const double *fixed, const double *dropped,
                      double *size)
{
    for (int i = 0; i < N_Z; ++i) {
        size[i] = fixed[i];
        for (int j = 0; j < N_Z; ++j) size[i] += fabs(J[(size_t)N_Z * i + j]) * fabs(z[j]);
        if (size[i] < dropped[i]) size[i] = dropped[i];
        if (size[i] < LEAST) size[i] = LEAST;
        if (!(size[i] < INFINITY))
            size[i] = NAN; /* an infinite slope says nothing of how far r is from zero */
    }
}

static double relative_error(const double *r, const double *size)
{
    double worst = 0.0;
    for (int i = 0; i < N_Z; ++i) {
        double error = fabs(r[i]) / size[i];
        if (error > DBL_MAX && isfinite(r[i])) error = DBL_MAX;
        if (!(error <= worst)) worst = error; /* NaN is kept */
        if (isnan(worst)) return worst;
    }
    return worst;
}

#if defined(__GNUC__)
#define SELDOM __attribute__((noinline, cold))
#define TWICE __attribute__((always_inline)) inline
#else
#define SELDOM
#define TWICE
#endif

/* Whether the correction after a step t dz from z to trial, with the factors of that step, is
 * smaller than dz. */
static int natural(const double *factors, const int *pivots, const double *r, const double *z,
                   const double *trial, const double *dz, double t)
{
    double after[N_Z], weights[N_Z];
    memcpy(after, r, sizeof after);
    substitute(factors, pivots, after);
    for (int j = 0; j < N_Z; ++j) {
        weights[j] = fmax(fabs(z[j]), fabs(trial[j]));
        if (weights[j] == 0.0) weights[j] = INFINITY; /* it has not moved */
    }
    return relative_error(after, weights) < (1.0 - t / 4) * relative_error(dz, weights);
}

/* Sizes of the rows, of those dropped before and of those larger than `stuck`, that are the
 * round-off of all their terms, or of those that the elimination added up for the correction dz,
 * |P^T| |L| |U| |dz|; 0 of others. */
SELDOM static void drop_round_off(const double *x, const double *u, const double *p,
                                  const double *z, const double *factors, const int *pivots,
                                  const double *dz, const double *r, const double *stuck,
                                  double *dropped)
{
    double terms[N_Z], passed[N_Z], added[N_Z];
    call_terms(x, u, z, p, terms);
    for (int i = 0; i < N_Z; ++i) {
        passed[i] = 0.0;
        for (int j = i; j < N_Z; ++j) passed[i] += fabs(factors[(size_t)N_Z * i + j] * dz[j]);
        added[i] = passed[i];
        for (int j = 0; j < i; ++j) added[i] += fabs(factors[(size_t)N_Z * i + j]) * passed[j];
    }
    for (int k = N_Z - 1; k >= 0; --k) {
        const double t = added[k];
        added[k] = added[pivots[k]];
        added[pivots[k]] = t;
    }
    for (int i = 0; i < N_Z; ++i) {
        if (!isfinite(terms[i])) terms[i] = 0.0;
        if (isfinite(added[i]) && terms[i] < added[i]) terms[i] = added[i];
        const int drops =
            (dropped[i] > 0.0 || fabs(r[i]) > stuck[i]) && fabs(r[i]) <= TARGET * terms[i];
        dropped[i] = drops ? terms[i] : 0.0;
    }
}

static int factor_copy(const double *J, double *factors, int *pivots)
{
    memcpy(factors, J, sizeof(double) * N_Z * N_Z);
    return factor(factors, pivots);
}

/* z: in zero, or a guess if `warm`, out the solution; `patient`: with the natural test, and
 * dropping round-off. fixed: sizes of r's terms in x and u, of a guess those of the last step from
 * zero. info: iterations, relative error, largest |r|. J, factors: room for (N_Z, N_Z). */
TWICE static int iterate(int patient, int warm, const double *x, const double *u, const double *p,
                         double *z, double *fixed, double *info, double *J, double *factors)
{
    double r[N_Z], dz[N_Z], trial[N_Z], size[N_Z], larger[N_Z];
    double start[N_Z], stuck[N_Z], dropped[N_Z];
    int pivots[N_Z], fresh = 1, exact = 0;
    if (warm) {
        call_residual(x, u, z, p, r);
        call_jacobian(x, u, z, p, J);
    } else {
        memset(z, 0, sizeof(double) * N_Z);
        call_start(x, u, p, fixed, r, J);
        for (int i = 0; i < N_Z; ++i)
            if (!isfinite(fixed[i])) fixed[i] = 0.0;
    }
    memset(dropped, 0, sizeof dropped);
    row_sizes(J, z, fixed, dropped, size);
    int singular = factor_copy(J, factors, pivots);
    double error = relative_error(r, size), rate = 1.0;
    int status = EXHAUSTED, iteration = 0;
    for (; iteration <= MAX_ITERATIONS; ++iteration) {
        if (!isfinite(error)) {
            status = NOT_FINITE;
            break;
        }
        const int settled = exact && rate > 0.25, foretold = error * rate <= 0.01 * TARGET;
        const int converged = error <= TARGET || (error <= ACCEPT && (settled || foretold));
        if (!converged && iteration == MAX_ITERATIONS) break;
        if (!converged && !fresh && rate > REFRESH) {
            call_jacobian(x, u, z, p, J);
            if (patient) {
                for (int i = 0; i < N_Z; ++i) stuck[i] = INFINITY;
                drop_round_off(x, u, p, z, factors, pivots, dz, r, stuck, dropped);
            }
            row_sizes(J, z, fixed, dropped, size);
            singular = factor_copy(J, factors, pivots);
            error = relative_error(r, size);
            fresh = 1;
        }
        for (int i = 0; i < N_Z; ++i) dz[i] = -r[i];
        if (!singular) substitute(factors, pivots, dz);
        if (converged) {
            for (int i = 0; i < N_Z && !singular; ++i) z[i] += dz[i];
            status = CONVERGED;
            break;
        }
        if (singular) {
            status = SINGULAR;
            break;
        }
        if (patient) memcpy(start, r, sizeof r);
        double t = 1.0, next = error;
        int accepted = 0, renewed = 0;
        for (int halvings = 0; halvings <= (fresh ? MAX_HALVINGS : 0) && !accepted;
             ++halvings, t *= 0.5) {
            double enough = (1.0 - 1e-4 * t) * error;
            for (int i = 0; i < N_Z; ++i) trial[i] = z[i] + t * dz[i];
            call_residual(x, u, trial, p, r);
            next = relative_error(r, size);
            accepted = next < enough || next <= ACCEPT;
            renewed |= !accepted && fresh;
            if (!renewed) continue;
            call_jacobian(x, u, trial, p, J);
            if (patient) {
                for (int i = 0; i < N_Z; ++i)
                    stuck[i] = (1.0 - (1.0 - REFRESH) * t) * fabs(start[i]);
                drop_round_off(x, u, p, trial, factors, pivots, dz, r, stuck, dropped);
                for (int i = 0; i < N_Z; ++i)
                    if (size[i] < dropped[i]) size[i] = dropped[i];
                error = relative_error(start, size);
                enough = (1.0 - 1e-4 * t) * error;
            }
            row_sizes(J, trial, fixed, dropped, larger);
            next = relative_error(r, larger);
            for (int i = 0; i < N_Z; ++i) larger[i] = size[i] > larger[i] ? size[i] : larger[i];
            accepted = relative_error(r, larger) < enough || next <= ACCEPT ||
                       (patient && isfinite(next) && natural(factors, pivots, r, z, trial, dz, t));
        }
        if (!accepted && !fresh) { /* the Jacobian is too old */
            call_residual(x, u, z, p, r);
            rate = INFINITY;
            continue;
        }
        if (!accepted) {
            status = isfinite(next) ? STALLED : NOT_FINITE;
            error = next;
            break;
        }
        memcpy(z, trial, sizeof trial);
        exact = fresh;
        fresh = renewed;
        if (renewed) singular = factor_copy(J, factors, pivots);
        row_sizes(J, z, fixed, dropped, size);
        next = relative_error(r, size);
        rate = next / fmax(error, LEAST);
        error = next;
    }
    info[0] = iteration;
    info[1] = error;
    info[2] = 0.0;
    for (int i = 0; i < N_Z; ++i)
        if (!(fabs(r[i]) <= info[2])) info[2] = fabs(r[i]);
    return status;
}

static int newton(int warm, const double *x, const double *u, const double *p, double *z,
                  double *fixed, double *info, double *J, double *factors)
{
    return iterate(0, warm, x, u, p, z, fixed, info, J, factors);
}

SELDOM static int patient_newton(const double *x, const double *u, const double *p, double *z,
                                 double *fixed, double *info, double *J, double *factors)
{
    return iterate(1, 0, x, u, p, z, fixed, info, J, factors);
}

static int may_have_a_solution(int status) { return status == STALLED || status == EXHAUSTED; }

/* Every routine takes the list of arrays and returns a status; its results are among the arrays. A
 * step with a[WARM] not zero starts at the guess in a[Z], and at zero only if that fails. */
int nh_step(double *const *a)
{
    const double *x = a[X], *u = a[U], *p = a[P];
    double *z = a[Z], *x1 = a[X1], domain[N_DOMAIN + 1];
    int status = CONVERGED;
    if (N_Z && *a[WARM] != 0.0)
        status = newton(1, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    if (N_Z && (*a[WARM] == 0.0 || status != CONVERGED))
        status = newton(0, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    if (may_have_a_solution(status))
        status = patient_newton(x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    if (status != CONVERGED) return status;
    call_readout(x, u, z, p, x1, domain);
    if (!all_finite(N_X, x1)) return NOT_FINITE;
    for (int i = 0; i < N_DOMAIN; ++i)
        if (!(domain[i] > 0.0)) return i < N_DOMAIN - N_TURNS ? OUTSIDE : HALF_TURN;
    return CONVERGED;
}
