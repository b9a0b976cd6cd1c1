/* Damped Newton iteration for r(x, u, z) = 0 around the functions CasADi generates; the algorithm of newton.py, which documents it.
 * Before this text stand the generated functions and
 *   N_X, N_U, N_Z, N_DOMAIN    sizes;
 *   call_scale(x, u, z, s), call_residual(x, u, z, r, J), call_readout(x, u, z, x1, domain)
 *   TARGET, ACCEPT, SMALL, MAX_ITERATIONS, MAX_HALVINGS    from newton.py. */
#include <math.h>
#include <string.h>

enum status { CONVERGED = 0, NOT_FINITE = 1, SINGULAR = 2, STALLED = 3, EXHAUSTED = 4, OUTSIDE = 5 };

typedef void (*lapack_dgesv)(int *n, int *nrhs, double *a, int *lda, int *ipiv, double *b, int *ldb, int *info);
typedef void (*lapack_dgetrs)(char *trans, int *n, int *nrhs, double *a, int *lda, int *ipiv, double *b, int *ldb, int *info);

static lapack_dgesv dgesv;
static lapack_dgetrs dgetrs;

void nh_set_lapack(void *for_dgesv, void *for_dgetrs)
{
    dgesv = (lapack_dgesv)for_dgesv;
    dgetrs = (lapack_dgetrs)for_dgetrs;
}

static void row_sizes(const double *J, const double *z, const double *fixed, double *size)
{
    double least = 0.0;
    for (int i = 0; i < N_Z; ++i) {
        size[i] = fixed[i];
        if (fabs(z[i]) > least) least = fabs(z[i]);
    }
    least *= SMALL;
    for (int j = 0; j < N_Z; ++j) {
        const double unknown = fabs(z[j]) > least ? fabs(z[j]) : least;
        for (int i = 0; i < N_Z; ++i) size[i] += fabs(J[i + N_Z * j]) * unknown;
    }
    for (int i = 0; i < N_Z; ++i)
        if (size[i] < 1e-300) size[i] = 1e-300;
}

static double relative_error(const double *r, const double *size)
{
    double worst = 0.0;
    for (int i = 0; i < N_Z; ++i) {
        const double error = fabs(r[i]) / size[i];
        if (!(error <= worst)) worst = error; /* NaN is kept */
        if (isnan(worst)) return worst;
    }
    return worst;
}

/* z: in the start, out the solution. info: iterations, relative error, largest |r|. */
static int newton(const double *x, const double *u, double *z, double *info)
{
    double r[N_Z], J[N_Z * N_Z], factors[N_Z * N_Z], fixed[N_Z], dz[N_Z], trial[N_Z], size[N_Z], start[N_Z], larger[N_Z];
    int pivots[N_Z], n = N_Z, one = 1, failed = 0;
    call_scale(x, u, z, fixed);
    call_residual(x, u, z, r, J);
    row_sizes(J, z, fixed, size);
    double error = relative_error(r, size), previous = INFINITY;
    int status = EXHAUSTED, iteration = 0;
    for (; iteration <= MAX_ITERATIONS; ++iteration) {
        if (!isfinite(error)) { status = NOT_FINITE; break; }
        const int converged = error <= TARGET || (error <= ACCEPT && error > 0.25 * previous);
        if (!converged && iteration == MAX_ITERATIONS) break;
        for (int i = 0; i < N_Z; ++i) dz[i] = -r[i];
        if (converged && iteration) {
            dgetrs("N", &n, &one, factors, &n, pivots, dz, &n, &failed);
        } else {
            memcpy(factors, J, sizeof J);
            dgesv(&n, &one, factors, &n, pivots, dz, &n, &failed);
        }
        if (converged) {
            for (int i = 0; i < N_Z && !failed; ++i) z[i] += dz[i];
            status = CONVERGED;
            break;
        }
        if (failed) { status = SINGULAR; break; }
        previous = error;
        memcpy(start, size, sizeof size);
        double t = 1.0;
        int accepted = 0;
        for (int halvings = 0; halvings <= MAX_HALVINGS && !accepted; ++halvings, t *= 0.5) {
            for (int i = 0; i < N_Z; ++i) trial[i] = z[i] + t * dz[i];
            call_residual(x, u, trial, r, J);
            row_sizes(J, trial, fixed, size);
            error = relative_error(r, size);
            for (int i = 0; i < N_Z; ++i) larger[i] = start[i] > size[i] ? start[i] : size[i];
            accepted = relative_error(r, larger) < (1.0 - 1e-4 * t) * previous || error <= ACCEPT;
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
