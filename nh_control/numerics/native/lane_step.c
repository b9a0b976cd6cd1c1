/* Steps of several runs at once, one in each lane of the processor's vectors.
 *
 * A lane takes the operations of newton_step.c in their order, with the same bits, as long as
 * its iteration is straightforward: no step is halved, no attempt is repeated, all numbers are
 * finite. Other lanes leave, and are stepped again one by one. A lane that has converged keeps its
 * solution while others iterate.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <float.h>
#include <string.h>

#include "definitions.h"
#include "lane_functions.h"
#include "lane_system.h"
#include "stepper.h"

/* The lanes' step; `fixed`: sizes of r's terms in x and u. */
struct lane_step {
    lanes x[N_X], u[N_U + 1], p[N_P], z[N_Z + 1], x1[N_X], domain[N_DOMAIN + 1];
    lanes fixed[N_Z + 1], r[N_Z + 1], size[N_Z + 1], J[N_Z * N_Z + 1], factors[N_Z * N_Z + 1];
    lane_mask pivots[N_Z + 1];
};

/* The relative error (S2), NaN where an r_i or a size_i is NaN. */
static lanes relative_error(const lanes *r, const lanes *size)
{
    lanes worst = in_all(0.0), total = in_all(0.0);
    for (int i = 0; i < N_Z; ++i) {
        const lanes error = lane_fabs(r[i]) / size[i];
        worst = choose(error > worst, error, worst);
        total += error;
    }
    return choose(total == total, worst, total);
}

/* The sizes s_i (S2) with the Jacobian J. */
static void sizes(const struct lane_step *s, const lanes *J, const lanes *z, lanes *size)
{
    for (int i = 0; i < N_Z; ++i) {
        lanes sum = s->fixed[i];
        for (int j = 0; j < N_Z; ++j) sum += lane_fabs(J[N_Z * i + j]) * lane_fabs(z[j]);
        sum = choose(sum < LEAST, in_all(LEAST), sum);
        size[i] = choose(sum < INFINITY, sum, in_all(NAN));
    }
}

/* Exchanges row k of b (N_Z, m) with row pivots[k]. */
static inline void exchange(const lane_mask *pivots, int k, int m, lanes *b)
{
    for (int i = k + 1; i < N_Z; ++i) {
        const lane_mask here = pivots[k] == i;
        if (!any_lane(here)) continue;
        for (int j = 0; j < m; ++j) {
            const lanes row = b[m * k + j], other = b[m * i + j];
            b[m * k + j] = choose(here, other, row);
            b[m * i + j] = choose(here, row, other);
        }
    }
}

/* Factors (S1) of a (N_Z, N_Z) in place, as `lu_factor`; the lanes where a is regular. */
static lane_mask factorize(lanes *a, lane_mask *pivots)
{
    lane_mask regular = all_lanes();
    for (int k = 0; k < N_Z; ++k) {
        lanes largest = lane_fabs(a[N_Z * k + k]);
        pivots[k] = (lane_mask){0} + k;
        for (int i = k + 1; i < N_Z; ++i) {
            const lanes size = lane_fabs(a[N_Z * i + k]);
            const lane_mask larger = ~(size <= largest);
            largest = choose(larger, size, largest);
            pivots[k] = (larger & i) | (~larger & pivots[k]);
        }
        regular &= (largest > 0.0) & (largest < INFINITY);
        exchange(pivots, k, N_Z, a);
        for (int i = k + 1; i < N_Z; ++i) {
            lanes *first = a + N_Z * i + k;
            const lane_mask taken = *first != 0.0;
            if (!any_lane(taken)) continue;
            const lanes f = *first / a[N_Z * k + k];
            *first = choose(taken, f, *first);
            for (int j = 1; j < N_Z - k; ++j)
                first[j] = choose(taken, first[j] - f * a[N_Z * k + k + j], first[j]);
        }
    }
    return regular;
}

/* y = -r_z^{-1} r (S3). */
static void solve(const struct lane_step *s, const lanes *r, lanes *y)
{
    const lanes *factors = s->factors;
    for (int i = 0; i < N_Z; ++i) y[i] = -r[i];
    for (int k = 0; k < N_Z; ++k) exchange(s->pivots, k, 1, y);
    for (int i = 1; i < N_Z; ++i)
        for (int k = 0; k < i; ++k) y[i] -= factors[N_Z * i + k] * y[k];
    for (int k = N_Z - 1; k >= 0; --k) {
        y[k] *= 1.0 / factors[N_Z * k + k];
        for (int i = 0; i < k; ++i) y[i] -= factors[N_Z * i + k] * y[k];
    }
}

/* a (n) takes the values of b in the lanes of a mask. */
static void take(lane_mask mask, int n, lanes *a, const lanes *b)
{
    for (int i = 0; i < n; ++i) a[i] = choose(mask, b[i], a[i]);
}

/* The Jacobian at z in the lanes of a mask. */
static void renew_jacobian(struct lane_step *s, lane_mask mask, const lanes *z)
{
    lanes J[N_Z * N_Z + 1];
    lane_jacobian(s->x, s->u, z, s->p, J);
    take(mask, N_Z * N_Z, s->J, J);
}

/* Factors of the Jacobian in the lanes of a mask; those of them where it is singular. */
static lane_mask renew_factors(struct lane_step *s, lane_mask mask)
{
    lanes factors[N_Z * N_Z + 1];
    lane_mask pivots[N_Z + 1];
    memcpy(factors, s->J, sizeof(s->J));
    const lane_mask regular = factorize(factors, pivots);
    take(mask, N_Z * N_Z, s->factors, factors);
    for (int k = 0; k < N_Z; ++k) s->pivots[k] = (mask & pivots[k]) | (~mask & s->pivots[k]);
    return mask & ~regular;
}

/* The iteration (S2), (S3) of the lanes `going`, from a guess in s->z if `warm`, from zero
 * otherwise; the lanes that have converged, to s->z. */
static lane_mask newton(struct lane_step *s, int warm, lane_mask going)
{
    lanes size[N_Z + 1], dz[N_Z + 1], trial[N_Z + 1], r[N_Z + 1], larger[N_Z + 1];
    if (warm) {
        lane_residual(s->x, s->u, s->z, s->p, s->r);
        lane_jacobian(s->x, s->u, s->z, s->p, s->J);
    } else {
        memset(s->z, 0, sizeof(s->z));
        lane_start(s->x, s->u, s->p, s->fixed, s->r, s->J);
        for (int i = 0; i < N_Z; ++i)
            s->fixed[i] = choose(lane_finite(s->fixed[i]), s->fixed[i], in_all(0.0));
    }
    sizes(s, s->J, s->z, s->size);
    going &= ~renew_factors(s, all_lanes());
    lanes error = relative_error(s->r, s->size), rate = in_all(1.0), least = in_all(INFINITY);
    lane_mask fresh = all_lanes(), exact = {0}, done = {0};
    for (int iteration = 0;; ++iteration) {
        going &= error <= DBL_MAX;
        const lane_mask settled = exact & (error > 0.25 * least),
                        foretold = (error * rate <= 0.01 * TOLERANCE) & (iteration ? -1LL : 0LL),
                        converged =
                            (error <= TOLERANCE) | ((error <= ACCEPT) & (settled | foretold));
        if (iteration >= MAX_ITERATIONS) going &= converged | (error <= ACCEPT);
        const lane_mask pays = error * (rate * rate * rate) > TOLERANCE,
                        slow = going & ~converged & ~fresh & pays;
        if (any_lane(slow)) {
            renew_jacobian(s, slow, s->z);
            sizes(s, s->J, s->z, size);
            take(slow, N_Z, s->size, size);
            going &= ~renew_factors(s, slow);
            error = choose(slow, relative_error(s->r, s->size), error);
            fresh |= slow;
        }
        least = choose(error < least, error, least);
        solve(s, s->r, dz);
        for (int i = 0; i < N_Z; ++i) trial[i] = s->z[i] + dz[i];
        take(going & converged, N_Z, s->z, trial);
        done |= going & converged;
        going &= ~converged;
        if (!any_lane(going)) return done;
        lane_residual(s->x, s->u, trial, s->p, r);
        lanes next = relative_error(r, s->size);
        lane_mask accepted = (next < (1.0 - 1e-4) * error) | (next <= ACCEPT);
        const lane_mask renewed = going & ~accepted & fresh;
        if (any_lane(renewed)) { /* by larger sizes, those at z and those at the trial */
            renew_jacobian(s, renewed, trial);
            sizes(s, s->J, trial, larger);
            next = choose(renewed, relative_error(r, larger), next);
            accepted |= renewed & (next <= ACCEPT);
            for (int i = 0; i < N_Z; ++i)
                larger[i] = choose(s->size[i] > larger[i], s->size[i], larger[i]);
            accepted |= renewed & (relative_error(r, larger) < (1.0 - 1e-4) * error);
            going &= accepted | ~renewed;
        }
        const lane_mask moved = going & accepted;
        rate = choose(going & ~accepted, in_all(INFINITY), rate); /* the factors are too old */
        take(moved, N_Z, s->z, trial);
        take(moved, N_Z, s->r, r);
        exact = (moved & fresh) | (~moved & exact);
        fresh = (moved & renewed) | (~moved & fresh);
        if (any_lane(renewed)) going &= ~renew_factors(s, renewed);
        const lane_mask resized = moved & (renewed | (error > CLOSE));
        if (any_lane(resized)) {
            sizes(s, s->J, s->z, size);
            take(resized, N_Z, s->size, size);
            next = choose(resized, relative_error(s->r, s->size), next);
        }
        rate = choose(moved, next / choose(error < LEAST, in_all(LEAST), error), rate);
        error = choose(moved, next, error);
    }
}

/* A step (S6) of the lanes `going` without substeps; those that end it. */
static lane_mask step(struct lane_step *s, int warm, lane_mask going)
{
    if (N_Z) going &= newton(s, warm, going);
    lane_readout(s->x, s->u, s->z, s->p, s->x1, s->domain);
    for (int i = 0; i < N_X; ++i) going &= lane_finite(s->x[i]) & lane_finite(s->x1[i]);
    for (int i = 0; i < N_U; ++i) going &= lane_finite(s->u[i]);
    for (int i = 0; i < N_DOMAIN; ++i) going &= s->domain[i] > 0.0;
    return going;
}

/* A step of the lanes `going`, of substeps by the n fractions (S10) as in `nh_substeps`; those
 * that end it, with the next states in s->x1. */
static lane_mask whole_step(struct lane_step *s, const struct stepper *one, lane_mask going)
{
    if (one->n == 1) return step(s, 0, going);
    const lanes whole = s->p[N_P - 1];
    const double *f = one->fractions;
    lanes last[N_Z + 1] = {{0.0}}, before[N_Z + 1];
    for (long long i = 0; i < one->n; ++i) {
        if (i) {
            memcpy(s->x, s->x1, sizeof(s->x));
            memcpy(before, last, sizeof(last));
            memcpy(last, s->z, sizeof(last));
            const double ratio = substep_ratio(i, f);
            for (int k = 0; k < N_Z && fabs(ratio) <= MAX_RATIO; ++k)
                s->z[k] += ratio * (last[k] - before[k]);
        }
        s->p[N_P - 1] = f[i] * whole;
        going = step(s, i > 0, going);
    }
    s->p[N_P - 1] = whole;
    return going;
}

/* Runs in the tables of the caller: those whose number of steps `done` (runs) is `begin` take the
 * steps begin ... end - 1 from their rows of x (runs, N_X), which move along; every row of inputs
 * is held for `every` steps, after which its row of states is the state. Strides are those between
 * two runs, 0 for one row of all runs. A run ends at the first step that fails, whose number is
 * its `done`. */
struct lane_runs {
    long long runs, begin, end, every, p_stride, input_stride, state_stride;
    const double *p, *inputs;
    double *x, *states;
    long long *done;
};

/* A step of one run by itself, from x under u with the parameters p; 1 where it fails. */
static int step_alone(const struct stepper *one, int (*substeps)(const struct stepper *),
                      double *own_p, const double *p, const double *u, double *x)
{
    double kept[N_P];
    memcpy(kept, own_p, sizeof(kept));
    memcpy(own_p, p, sizeof(kept));
    memcpy(one->x, x, sizeof(double) * N_X);
    memcpy(one->u, u, sizeof(double) * N_U);
    const int status = substeps(one);
    memcpy(own_p, kept, sizeof(kept));
    if (status == CONVERGED) memcpy(x, one->x1, sizeof(double) * N_X);
    return status != CONVERGED;
}

/* The runs from number `first` on, as many as there are lanes. */
static void simulate(const struct stepper *one, int (*substeps)(const struct stepper *),
                     const struct lane_runs *b, long long first)
{
    struct lane_step s;
    long long run[LANES];
    lane_mask going = {0};
    for (int i = 0; i < LANES; ++i) { /* lanes without a run compute what the last one does */
        run[i] = first + i < b->runs ? first + i : b->runs - 1;
        going[i] = first + i < b->runs && b->done[run[i]] == b->begin ? -1 : 0;
        for (int k = 0; k < N_P; ++k) s.p[k][i] = b->p[b->p_stride * run[i] + k];
        for (int k = 0; k < N_X; ++k) s.x[k][i] = b->x[N_X * run[i] + k];
    }
    double *own_p = (double *)one->arrays[P];
    for (long long k = b->begin; k < b->end && any_lane(going); ++k) {
        const long long row = k / b->every;
        const double *u[LANES];
        for (int i = 0; i < LANES; ++i) {
            u[i] = b->inputs + b->input_stride * run[i] + N_U * row;
            for (int j = 0; j < N_U; ++j) s.u[j][i] = u[i][j];
        }
        const lane_mask ended = whole_step(&s, one, going);
        for (int i = 0; i < LANES; ++i) {
            if (!going[i]) continue;
            double *x = b->x + N_X * run[i];
            if (ended[i])
                for (int j = 0; j < N_X; ++j) x[j] = s.x1[j][i];
            else if (step_alone(one, substeps, own_p, b->p + b->p_stride * run[i], u[i], x))
                going[i] = 0;
            if (!going[i]) continue;
            for (int j = 0; j < N_X; ++j) s.x[j][i] = x[j];
            memcpy(b->states + b->state_stride * run[i] + N_X * row, x, sizeof(double) * N_X);
            b->done[run[i]] = k + 1;
        }
    }
}

/* All runs, with the stepper of one thread and `nh_substeps` for those that leave. */
void nh_simulate_lanes(const struct stepper *one, int (*substeps)(const struct stepper *),
                       const struct lane_runs *b)
{
    for (long long first = 0; first < b->runs; first += LANES) simulate(one, substeps, b, first);
}
