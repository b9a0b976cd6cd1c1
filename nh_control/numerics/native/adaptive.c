/* Steps of variable size; adaptive.py documents the algorithm.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>
#include <string.h>

#include "adaptive.h"

/* Root of the mean square of e_i / (atol_i + rtol |block|) (S15). */
static double weighted(const struct equation *f, const double *e, const double *x,
                       const double *x1, const double *atol, double rtol)
{
    double sum = 0.0;
    const int *const places = f->places, *at = places;
    for (int b = 0; b < f->n_blocks; at += f->blocks[b++]) {
        double before = 0.0, after = 0.0;
        for (int k = 0; k < f->blocks[b]; ++k) {
            before += x[at[k]] * x[at[k]];
            after += x1[at[k]] * x1[at[k]];
        }
        const double size = rtol * sqrt(before > after ? before : after);
        for (int k = 0; k < f->blocks[b]; ++k) {
            const double part = e[at[k]] / (atol[at[k]] + size);
            sum += part * part;
        }
    }
    return sqrt(sum / (double)(at - places));
}

/* The error of a trial, with two embedded solutions by (S16). */
static double error_of(const struct equation *f, double *const *a)
{
    const double rtol = a[CONTROL][RTOL];
    const double first = weighted(f, a[ERRORS], a[X], a[X1], a[ATOL], rtol);
    if (f->n_errors == 1 || first == 0.0) return first;
    const double second = weighted(f, a[ERRORS] + f->n_x, a[X], a[X1], a[ATOL], rtol);
    return first * (first / hypot(first, DAMPING * second));
}

/* The rate of x at tau(h f) . x, and the field there in f1. */
static void rate_after(const struct equation *f, double *const *a, double h, double *rate)
{
    const double *const in[] = {a[X], a[F], a[U], a[P], &h};
    double *const out[] = {a[F1], rate};
    f->start.call(f->start.self, in, out);
}

/* The size of the first trial, from the sizes of x, of its rate (in ERRORS) and of the change of
 * the rate [Hairer, Norsett, Wanner: Solving ODEs I, II.4]. */
static double first_size(const struct equation *f, double *const *a)
{
    const double *const c = a[CONTROL], *const x = a[X], *const rate = a[ERRORS];
    const double span = c[END] - c[TIME], longest = fmin(fabs(span), c[LARGEST]);
    const double d0 = weighted(f, x, x, x, a[ATOL], c[RTOL]);
    const double d1 = weighted(f, rate, x, x, a[ATOL], c[RTOL]);
    /* An explicit Euler step of size h0 changes x by 1 % of its scale. */
    const double h0 = fmin(d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1, fabs(span));
    rate_after(f, a, copysign(h0, span), a[X1]);
    for (int i = 0; i < f->n_x; ++i) a[X1][i] -= rate[i];
    /* The change of the rate by h0 is an estimate of x'': h1^(order + 1) most = 0.01. */
    const double most = fmax(d1, weighted(f, a[X1], x, x, a[ATOL], c[RTOL]) / h0);
    const double h1 = most <= 1e-15 ? fmax(1e-6, 1e-3 * h0) : pow(0.01 / most, f->exponent);
    return fmin(fmin(100.0 * h0, h1), longest);
}

/* Prepare a run from x: the field there and, unless SIZE is positive, the size of the first trial.
 * Returns the number of evaluations of the field. F must be zero. */
int nh_adaptive_start(const struct equation *f, double *const *a)
{
    const int chosen = a[CONTROL][SIZE] > 0.0 || a[CONTROL][END] == a[CONTROL][TIME];
    rate_after(f, a, 0.0, a[ERRORS]);
    memcpy(a[F], a[F1], sizeof(double) * f->n_f);
    if (!chosen) a[CONTROL][SIZE] = first_size(f, a);
    return chosen ? 1 : 2;
}

/* One accepted step from (t, x): t, x1, f1, dense, the size of the next trial (S17); h is the
 * accepted step. */
static int accepted_step(const struct equation *f, double *const *a, long long *counts, double *h)
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
        const double *const in[] = {a[X], a[F], a[U], a[P], h};
        double *const out[] = {a[X1], a[F1], a[ERRORS], a[DENSE]};
        f->trial.call(f->trial.self, in, out);
        const double error = c[ERROR] = error_of(f, a);
        ++counts[TRIALS];
        if (error <= 1.0) {
            double factor = error > 0.0 ? SAFETY * pow(error, -f->exponent) : MOST;
            if (factor > MOST) factor = MOST;
            if (rejected && factor > 1.0) factor = 1.0;
            c[SIZE] = factor * size;
            c[TIME] = t1;
            return UNFINISHED;
        }
        const double factor = SAFETY * pow(error, -f->exponent);
        size *= factor > LEAST ? factor : LEAST; /* LEAST for NaN */
    }
}

/* Whether an event stops the run: g before and g1 after the step. */
static int stopping(int n, const double *g, const double *g1, const double *directions,
                    const double *limits, double *seen)
{
    int stop = 0;
    for (int k = 0; k < n; ++k) {
        const int up = g[k] < 0.0 && g1[k] >= 0.0 && directions[k] >= 0.0,
                  down = g[k] > 0.0 && g1[k] <= 0.0 && directions[k] <= 0.0;
        seen[k] += up || down;
        stop |= seen[k] >= limits[k];
    }
    return stop;
}

/* Values g of the events at the time c[TIME]. */
static void events(const struct equation *f, double *const *a, double *g)
{
    const double *const in[] = {&a[CONTROL][TIME], a[X], a[U], a[P]};
    double *const out[] = {g};
    f->events.call(f->events.self, in, out);
}

/* Steps until the end, a terminal event, a failure, or `room` steps; row 0 of times, states and
 * values is where they start, row k where step k ends. */
int nh_adaptive(const struct equation *f, double *const *a, long long *counts, long long room)
{
    double *c = a[CONTROL], h;
    a[TIMES][0] = c[TIME];
    memcpy(a[STATES], a[X], sizeof(double) * f->n_x);
    if (f->n_events) events(f, a, a[VALUES]);
    for (long long k = counts[STORED] = 0; c[TIME] != c[END]; ++k) {
        if (k == room) return UNFINISHED;
        const int status = accepted_step(f, a, counts, &h);
        if (status != UNFINISHED) return status;
        memcpy(a[X], a[X1], sizeof(double) * f->n_x);
        memcpy(a[F], a[F1], sizeof(double) * f->n_f);
        a[TIMES][k + 1] = c[TIME];
        memcpy(a[STATES] + f->n_x * (k + 1), a[X], sizeof(double) * f->n_x);
        if (f->n_dense) memcpy(a[CURVES] + f->n_dense * k, a[DENSE], sizeof(double) * f->n_dense);
        counts[STORED] = k + 1;
        if (!f->n_events) continue;
        double *g = a[VALUES] + f->n_events * k;
        events(f, a, g + f->n_events);
        if (stopping(f->n_events, g, g + f->n_events, a[DIRECTIONS], a[LIMITS], a[SEEN]))
            return STOPPED;
    }
    return FINISHED;
}

/* Points (n, n_x) at fractions theta (n) of steps with starts (n, n_x) and curves (n, n_dense). */
void nh_points(const struct equation *f, long long n, const double *starts, const double *curves,
               const double *theta, double *points)
{
    for (long long k = 0; k < n; ++k) {
        const double *const in[] = {starts + f->n_x * k, curves + f->n_dense * k, theta + k};
        double *const out[] = {points + f->n_x * k};
        f->point.call(f->point.self, in, out);
    }
}
