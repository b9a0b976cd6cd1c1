/* Steps of variable size; the algorithm of adaptive.py, which documents it. adaptive_system.h has
 * the functions, sizes and constants.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>
#include <string.h>

#include "adaptive_system.h"

/* Root of the mean square of e_i / (atol_i + rtol |block|) (S15). PLACES lists the numbers
 * block by block, BLOCKS the sizes of these. */
static double weighted(const double *e, const double *x, const double *x1, const double *atol,
                       double rtol)
{
    static const int blocks[] = {BLOCKS}, places[] = {PLACES};
    double sum = 0.0;
    const int *at = places;
    for (int b = 0; b < (int)(sizeof blocks / sizeof *blocks); at += blocks[b++]) {
        double before = 0.0, after = 0.0;
        for (int k = 0; k < blocks[b]; ++k) {
            before += x[at[k]] * x[at[k]];
            after += x1[at[k]] * x1[at[k]];
        }
        const double size = rtol * sqrt(before > after ? before : after);
        for (int k = 0; k < blocks[b]; ++k) {
            const double part = e[at[k]] / (atol[at[k]] + size);
            sum += part * part;
        }
    }
    return sqrt(sum / (sizeof places / sizeof *places));
}

/* The error of a trial, with two embedded solutions by (S16). */
static double error_of(double *const *a)
{
    const double rtol = a[CONTROL][RTOL], first = weighted(a[ERRORS], a[X], a[X1], a[ATOL], rtol);
    if (N_ERRORS == 1 || first == 0.0) return first;
    const double second = weighted(a[ERRORS] + N_X, a[X], a[X1], a[ATOL], rtol);
    return first * (first / hypot(first, DAMPING * second));
}

/* One accepted step from (t, x): t, x1, f1, dense, the size of the next trial (S17); h is the
 * accepted step. */
static int accepted_step(double *const *a, long long *counts, double *h)
{
    double *c = a[CONTROL];
    const double t = c[TIME], forward = c[END] > t ? 1.0 : -1.0,
                 least = 10.0 * fabs(nextafter(t, forward * INFINITY) - t);
    double size = c[SIZE] < least ? least : c[SIZE];
    for (int rejected = 0;; rejected = 1) {
        if (size > c[LARGEST]) size = c[LARGEST];
        if (size < least) return UNDERFLOWN;
        double t1 = t + forward * size;
        if (forward * (t1 - c[END]) > 0.0) t1 = c[END];
        *h = t1 - t;
        size = fabs(*h);
        call_nh_trial(a[X], a[F], a[U], a[P], h, a[X1], a[F1], a[ERRORS], a[DENSE]);
        const double error = c[ERROR] = error_of(a);
        ++counts[TRIALS];
        if (error <= 1.0) {
            double factor = error > 0.0 ? SAFETY * pow(error, -EXPONENT) : MOST;
            if (factor > MOST) factor = MOST;
            if (rejected && factor > 1.0) factor = 1.0;
            c[SIZE] = factor * size;
            c[TIME] = t1;
            return UNFINISHED;
        }
        const double factor = SAFETY * pow(error, -EXPONENT);
        size *= factor > LEAST ? factor : LEAST; /* NaN: the least */
    }
}

/* Whether an event stops the run: g before and g1 after the step. */
static int stopping(const double *g, const double *g1, const double *directions,
                    const double *limits, double *seen)
{
    int stop = 0;
    for (int k = 0; k < N_EVENTS; ++k) {
        const int up = g[k] < 0.0 && g1[k] >= 0.0 && directions[k] >= 0.0,
                  down = g[k] > 0.0 && g1[k] <= 0.0 && directions[k] <= 0.0;
        seen[k] += up || down;
        stop |= seen[k] >= limits[k];
    }
    return stop;
}

/* Steps until the end, a terminal event, a failure, or `room` steps; row 0 of times, states and
 * values is where they start, row k where step k ends. */
int nh_adaptive(double *const *a, long long *counts, long long room)
{
    double *c = a[CONTROL], h;
    a[TIMES][0] = c[TIME];
    memcpy(a[STATES], a[X], sizeof(double) * N_X);
    if (N_EVENTS) call_nh_events(&c[TIME], a[X], a[U], a[P], a[VALUES]);
    for (long long k = counts[STORED] = 0; c[TIME] != c[END]; ++k) {
        if (k == room) return UNFINISHED;
        const int status = accepted_step(a, counts, &h);
        if (status != UNFINISHED) return status;
        memcpy(a[X], a[X1], sizeof(double) * N_X);
        memcpy(a[F], a[F1], sizeof(double) * N_F);
        a[TIMES][k + 1] = c[TIME];
        memcpy(a[STATES] + N_X * (k + 1), a[X], sizeof(double) * N_X);
        if (N_DENSE) memcpy(a[CURVES] + N_DENSE * k, a[DENSE], sizeof(double) * N_DENSE);
        counts[STORED] = k + 1;
        if (!N_EVENTS) continue;
        double *g = a[VALUES] + N_EVENTS * k;
        call_nh_events(&c[TIME], a[X], a[U], a[P], g + N_EVENTS);
        if (stopping(g, g + N_EVENTS, a[DIRECTIONS], a[LIMITS], a[SEEN])) return STOPPED;
    }
    return FINISHED;
}

/* Points (n, N_X) at fractions theta (n) of steps with starts (n, N_X) and curves (n, N_DENSE). */
void nh_points(long long n, const double *starts, const double *curves, const double *theta,
               double *points)
{
    for (long long k = 0; k < n; ++k)
        call_nh_point(starts + N_X * k, curves + N_DENSE * k, theta + k, points + N_X * k);
}
