/* Whole steps and trajectories around nh_step. The step h is the last parameter. Sizes may be
 * constants, or expressions of the list of arrays `a`.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>
#include <string.h>

#include "system.h"

/* z becomes a guess of the n unknowns of substep i from those of the two before it, `last` and
 * then `before`, as mean velocities at the middles of their times (S10). */
static void guess(int n, int i, const double *f, const double *last, const double *before,
                  double *z)
{
    const double ratio = i > 1 ? (f[i] + f[i - 1]) / (f[i - 1] + f[i - 2]) : 0.0;
    for (int k = 0; k < n; ++k)
        z[k] = fabs(ratio) <= MAX_RATIO ? last[k] + ratio * (last[k] - before[k]) : last[k];
}

/* A composition: steps (S6) by `n` fractions of h one after another, from a[X] to a[X1]; a[X]
 * becomes the start of the last of them, or stays where one fails, a[Z] the unknowns of the
 * first. */
int nh_substeps(double *const *a, const double *fractions, int n)
{
    double *h = a[P] + N_P - 1, *z = a[Z];
    const double whole = *h;
    double start[N_X + 1], first[N_Z + 1], last[N_Z + 1], before[N_Z + 1];
    int status = CONVERGED;
    memcpy(start, a[X], sizeof(double) * N_X);
    memset(last, 0, sizeof last);
    memset(first, 0, sizeof first);
    for (int i = 0; i < n && status == CONVERGED; ++i) {
        if (i) {
            memcpy(a[X], a[X1], sizeof(double) * N_X);
            memcpy(before, last, sizeof before);
            memcpy(last, z, sizeof(double) * N_Z);
            guess(N_Z, i, fractions, last, before, z);
        }
        *h = fractions[i] * whole;
        *a[WARM] = i > 0;
        status = nh_step(a);
        if (!i) memcpy(first, z, sizeof(double) * N_Z);
    }
    if (status != CONVERGED) memcpy(a[X], start, sizeof(double) * N_X);
    else if (n > 1) memcpy(z, first, sizeof(double) * N_Z);
    *h = whole;
    *a[WARM] = 0.0;
    return status;
}

/* Steps number *done ... end - 1 from a[X], which moves along; every row of inputs is held for
 * `every` steps, after which its row of states is the state. Stops at the first step that fails,
 * whose number is *done. */
int nh_simulate(double *const *a, const double *fractions, int n, long long *done, long long end,
                long long every, const double *inputs, double *states)
{
    for (; *done < end; ++*done) {
        const long long row = *done / every;
        memcpy(a[U], inputs + N_U * row, sizeof(double) * N_U);
        const int status = nh_substeps(a, fractions, n);
        if (status != CONVERGED) return status;
        memcpy(a[X], a[X1], sizeof(double) * N_X);
        memcpy(states + N_X * row, a[X], sizeof(double) * N_X);
    }
    return CONVERGED;
}
