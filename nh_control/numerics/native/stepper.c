/* Whole steps and trajectories around the step of a system.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "stepper.h"

#include <math.h>
#include <string.h>

#include "definitions.h"

/* z becomes a guess of the n unknowns of substep i from those of the two before it, `last` and
 * then `before` (S10). */
static void guess(long long n, long long i, const double *f, const double *last,
                  const double *before, double *z)
{
    const double ratio = substep_ratio(i, f);
    for (long long k = 0; k < n; ++k)
        z[k] = fabs(ratio) <= MAX_RATIO ? last[k] + ratio * (last[k] - before[k]) : last[k];
}

/* A composition: steps (S6) by the fractions of h one after another, from x to x1; x becomes the
 * start of the last of them, or stays where one fails, z the unknowns of the first. */
int nh_substeps(const struct stepper *s)
{
    if (s->n == 1) return s->step(s->arrays);
    const size_t state = sizeof(double) * (size_t)s->nx, unknowns = sizeof(double) * (size_t)s->nz;
    double *start = s->room, *first = start + s->nx, *last = first + s->nz, *before = last + s->nz;
    const double whole = *s->h;
    int status = CONVERGED;
    memcpy(start, s->x, state);
    memset(last, 0, unknowns);
    for (long long i = 0; i < s->n && status == CONVERGED; ++i) {
        if (i) {
            memcpy(s->x, s->x1, state);
            memcpy(before, last, unknowns);
            memcpy(last, s->z, unknowns);
            guess(s->nz, i, s->fractions, last, before, s->z);
        }
        *s->h = s->fractions[i] * whole;
        *s->warm = i > 0;
        status = s->step(s->arrays);
        if (!i) memcpy(first, s->z, unknowns);
    }
    if (status != CONVERGED) memcpy(s->x, start, state);
    else memcpy(s->z, first, unknowns);
    *s->h = whole;
    *s->warm = 0.0;
    return status;
}

/* z becomes a guess of the n unknowns of a step from those of the three before it, the newest
 * first in `history`: on a parabola (S10b). */
static void extrapolate(long long n, const double *history, double *z)
{
    for (long long k = 0; k < n; ++k)
        z[k] = history[k] + 2.0 * (history[k] - history[n + k]) -
               (history[n + k] - history[2 * n + k]);
}

/* Steps number *done ... end - 1 from x, which moves along; every row of inputs is held for
 * `every` steps, after which its row of states is the state. Stops at the first step that fails,
 * whose number is *done. `history`: NULL, or the unknowns (3, nz) of the steps before, from which
 * steps without substeps start. */
int nh_simulate(const struct stepper *s, long long *done, long long end, long long every,
                const double *inputs, double *states, double *history)
{
    const size_t state = sizeof(double) * (size_t)s->nx, unknowns = sizeof(double) * (size_t)s->nz;
    for (; *done < end; ++*done) {
        const long long row = *done / every;
        memcpy(s->u, inputs + s->nu * row, sizeof(double) * (size_t)s->nu);
        if (history && *done >= 3) {
            extrapolate(s->nz, history, s->z);
            *s->warm = FROM_LAST_STEPS;
        }
        const int status = nh_substeps(s);
        *s->warm = 0.0;
        if (status != CONVERGED) return status;
        if (history) {
            memmove(history + s->nz, history, 2 * unknowns);
            memcpy(history, s->z, unknowns);
        }
        memcpy(s->x, s->x1, state);
        memcpy(states + s->nx * row, s->x, state);
    }
    return CONVERGED;
}

/* Steps from the rows of x (rows, nx) under those of u (rows, nu) to those of x1, 0 in `statuses`
 * where they succeed. */
void nh_steps(const struct stepper *s, long long rows, const double *x, const double *u,
              double *x1, int *statuses)
{
    const size_t state = sizeof(double) * (size_t)s->nx;
    for (long long i = 0; i < rows; ++i) {
        memcpy(s->x, x + s->nx * i, state);
        memcpy(s->u, u + s->nu * i, sizeof(double) * (size_t)s->nu);
        statuses[i] = nh_substeps(s);
        memcpy(x1 + s->nx * i, s->x1, state);
    }
}

/* Steps from the rows *done ... end - 1 of x (rows, nx) under those of u (rows, nu): their
 * derivatives A (rows, ndx, ndx) and B (rows, ndx, nu), and the next states x1 (rows, nx). Stops
 * at the first step that fails, whose row is *done. */
int nh_linearize_steps(int (*linearize)(int (*)(double *const *), double *const *),
                       const struct stepper *s, long long ndx, long long *done, long long end,
                       const double *x, const double *u, double *A, double *B, double *x1)
{
    const size_t state = sizeof(double) * (size_t)s->nx;
    const long long columns = ndx + s->nu;
    for (; *done < end; ++*done) {
        const long long k = *done;
        memcpy(s->x, x + s->nx * k, state);
        memcpy(s->u, u + s->nu * k, sizeof(double) * (size_t)s->nu);
        const int status = linearize(s->step, s->arrays);
        if (status != CONVERGED) return status;
        memcpy(x1 + s->nx * k, s->x1, state);
        for (long long i = 0; i < ndx; ++i) {
            const double *row = s->arrays[AB] + columns * i;
            memcpy(A + ndx * (ndx * k + i), row, sizeof(double) * (size_t)ndx);
            memcpy(B + s->nu * (ndx * k + i), row + ndx, sizeof(double) * (size_t)s->nu);
        }
    }
    return CONVERGED;
}
