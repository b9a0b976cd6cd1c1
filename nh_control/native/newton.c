/* Damped Newton iteration for r(x, u, z) = 0 around the functions CasADi generates; the algorithm of newton.py, which documents it.
 * Before this text stand the generated functions and
 *   N_X, N_U, N_Z, N_DOMAIN    sizes;
 *   call_scale(x, u, z, s), call_residual(x, u, z, r, J), call_readout(x, u, z, x1, domain)
 *   TARGET, ACCEPT, MAX_ITERATIONS, MAX_HALVINGS    from newton.py. */
#include <math.h>

enum status { CONVERGED = 0, NOT_FINITE = 1, SINGULAR = 2, STALLED = 3, EXHAUSTED = 4, OUTSIDE = 5 };

typedef void (*lapack_dgesv)(int *n, int *nrhs, double *a, int *lda, int *ipiv, double *b, int *ldb, int *info);

static lapack_dgesv solve;

void nh_set_dgesv(void *pointer) { solve = (lapack_dgesv)pointer; }

static double relative_error(const double *r, const double *J, const double *z, const double *fixed)
{
    double worst = 0.0;
    for (int i = 0; i < N_Z; ++i) {
        double size = fixed[i];
        for (int j = 0; j < N_Z; ++j) size += fabs(J[i + N_Z * j] * z[j]);
        const double error = fabs(r[i]) / (size > 1e-300 ? size : 1e-300);
        if (!(error <= worst)) worst = error; /* NaN is kept */
        if (isnan(worst)) return worst;
    }
    return worst;
}

/* z: in the start, out the solution. info: iterations, relative error, largest |r|. */
static int newton(const double *x, const double *u, double *z, double *info)
{
    double r[N_Z], J[N_Z * N_Z], fixed[N_Z], dz[N_Z], trial[N_Z];
    int pivots[N_Z], n = N_Z, one = 1, failed;
    call_scale(x, u, z, fixed);
    call_residual(x, u, z, r, J);
    double error = relative_error(r, J, z, fixed), previous = INFINITY;
    int status = EXHAUSTED, iteration = 0;
    for (; iteration <= MAX_ITERATIONS; ++iteration) {
        if (!isfinite(error)) { status = NOT_FINITE; break; }
        if (error <= TARGET || (error <= ACCEPT && error > 0.25 * previous)) { status = CONVERGED; break; }
        if (iteration == MAX_ITERATIONS) break;
        for (int i = 0; i < N_Z; ++i) dz[i] = -r[i];
        solve(&n, &one, J, &n, pivots, dz, &n, &failed);
        if (failed) { status = SINGULAR; break; }
        previous = error;
        double t = 1.0;
        int accepted = 0;
        for (int halvings = 0; halvings <= MAX_HALVINGS && !accepted; ++halvings, t *= 0.5) {
            for (int i = 0; i < N_Z; ++i) trial[i] = z[i] + t * dz[i];
            call_residual(x, u, trial, r, J);
            error = relative_error(r, J, trial, fixed);
            accepted = error < (1.0 - 1e-4 * t) * previous || error <= ACCEPT;
        }
        if (!accepted) { status = isfinite(error) ? STALLED : NOT_FINITE; break; }
        for (int i = 0; i < N_Z; ++i) z[i] = trial[i];
    }
    info[0] = iteration;
    info[1] = error;
    info[2] = 0.0;
    for (int i = 0; i < N_Z; ++i)
        if (!(fabs(r[i]) <= info[2])) info[2] = fabs(r[i]);
    return status;
}

int nh_step(const double *x, const double *u, double *z, double *x1, double *info)
{
    for (int i = 0; i < N_Z; ++i) z[i] = 0.0;
    const int status = N_Z ? newton(x, u, z, info) : CONVERGED;
    if (status != CONVERGED) return status;
    double domain[N_DOMAIN + 1];
    call_readout(x, u, z, x1, domain);
    for (int i = 0; i < N_X; ++i)
        if (!isfinite(x1[i])) return NOT_FINITE;
    for (int i = 0; i < N_DOMAIN; ++i)
        if (!(domain[i] > 0.0)) return OUTSIDE;
    return CONVERGED;
}
