#ifndef NH_NEWTON_H
#define NH_NEWTON_H
/* The damped simplified Newton iteration for r(z) = 0, for generated functions (newton_step.c) and
 * for trees (multibody/native/step.c). numerics/newton.py documents the algorithm,
 * definitions.h has its constants, doc/theory/native_steps.md the equations (S...). The
 * callbacks are constants where the iteration is called, so that compilers inline them. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "definitions.h"

#if defined(__GNUC__)
#define NEWTON_INLINE static inline __attribute__((always_inline))
#else
#define NEWTON_INLINE static inline
#endif

/* Why a Jacobian is taken: its old factors shrink r too slowly, or a trial with new ones fails. */
enum newton_cause { SLOW, REJECTED };

/* An equation r(z) = 0 of n rows in its iteration, with room for n numbers each: the residual and
 * the sizes of its rows, the correction, the trial z + t dz, the residual before it, and sizes
 * that a search meets. */
struct newton {
    int n;
    void *equation;
    double *r, *size, *dz, *trial, *start, *larger, *after;
};

struct newton_callbacks {
    /* r becomes that of z, after as many accepted steps as `iteration`. */
    void (*residual)(const struct newton *it, int iteration, const double *z);
    /* Prepares factors and sizes at z, where r was taken last. */
    void (*jacobian)(const struct newton *it, enum newton_cause cause, const double *z);
    /* Sizes of the rows at z, positive, or not a number. */
    void (*sizes)(const struct newton *it, const double *z, double *size);
    /* Factors at the last Jacobian; 1 where they are singular. */
    int (*factor)(const struct newton *it);
    /* y = -r_z^{-1} r with the last factors. */
    void (*solve)(const struct newton *it, const double *r, double *y);
    /* Whether new factors are worth their time where old ones shrink the error by `rate`. */
    int (*factors_pay)(const struct newton *it, double error, double rate);
    /* In a patient attempt, at z after t dz: rows that are round-off get larger sizes, if a step
     * with old factors met them (SLOW) or a rejected one. NULL: there are none. */
    void (*drop_round_off)(const struct newton *it, enum newton_cause cause, const double *z,
                           double t);
};

/* Where an iteration begins: the relative error of r, its ratio to the error before, whether the
 * factors are those of z, and whether they are singular. */
struct newton_start {
    double error, rate;
    int fresh, singular;
};

/* The error (S2), max_i |r_i| / size_i; finite where r is, not a number where an r_i or a
 * size_i is none. */
NEWTON_INLINE double relative_error(int n, const double *r, const double *size)
{
    double worst = 0.0, total = 0.0;
    for (int i = 0; i < n; ++i) {
        const double error = fabs(r[i]) / size[i];
        worst = error > worst ? error : worst;
        total += error;
    }
    if (isnan(total)) return total;
    for (int i = 0; i < n && worst > DBL_MAX; ++i)
        if (!isfinite(r[i])) return worst;
    return fmin(worst, DBL_MAX);
}

/* Deuflhard's natural test (S4): whether the correction after a step t dz from z to the trial,
 * with the factors of that step, is smaller than dz. */
NEWTON_INLINE int natural_test(const struct newton *it, const struct newton_callbacks *call,
                               const double *z, double t)
{
    double *weights = it->larger;
    call->solve(it, it->r, it->after);
    for (int i = 0; i < it->n; ++i) {
        weights[i] = fmax(fabs(z[i]), fabs(it->trial[i]));
        if (weights[i] == 0.0) weights[i] = INFINITY; /* it has not moved */
    }
    return relative_error(it->n, it->after, weights) <
           (1.0 - t / 4) * relative_error(it->n, it->dz, weights);
}

/* Whether the trial after t dz is accepted by larger sizes, those at z and those at the trial;
 * *next: the relative error there. `error`: the one at z, which dropped rows change. */
NEWTON_INLINE int accepted_there(const struct newton *it, const struct newton_callbacks *call,
                                 int patient, const double *z, double t, double *error,
                                 double *next)
{
    call->jacobian(it, REJECTED, it->trial);
    if (patient && call->drop_round_off) {
        call->drop_round_off(it, REJECTED, it->trial, t);
        *error = relative_error(it->n, it->start, it->size);
    }
    call->sizes(it, it->trial, it->larger);
    *next = relative_error(it->n, it->r, it->larger);
    for (int i = 0; i < it->n; ++i)
        if (it->size[i] > it->larger[i]) it->larger[i] = it->size[i];
    return relative_error(it->n, it->r, it->larger) < (1.0 - 1e-4 * t) * *error ||
           *next <= ACCEPT || (patient && isfinite(*next) && natural_test(it, call, z, t));
}

/* The iteration (S2)-(S5). z: in a guess, out the solution; `patient`: with the natural test,
 * and dropping round-off. info: iterations, relative error, largest |r|. */
NEWTON_INLINE int newton_iteration(const struct newton *it, const struct newton_callbacks *call,
                                   int patient, struct newton_start from, double *z, double *info)
{
    const int n = it->n;
    double error = from.error, rate = from.rate, least = INFINITY;
    int fresh = from.fresh, singular = from.singular, exact = 0;
    int status = EXHAUSTED, iteration = 0;
    for (;; ++iteration) {
        if (!isfinite(error)) {
            status = NOT_FINITE;
            break;
        }
        /* a first rate is between two sizes of the terms and foretells nothing */
        const int settled = exact && error > 0.25 * least,
                  foretold = iteration && error * rate <= 0.01 * TOLERANCE,
                  converged = error <= TOLERANCE || (error <= ACCEPT && (settled || foretold));
        if (!converged && iteration >= MAX_ITERATIONS && error > ACCEPT) break;
        if (!converged && !fresh && (singular || call->factors_pay(it, error, rate))) {
            call->jacobian(it, SLOW, z);
            if (patient && call->drop_round_off) call->drop_round_off(it, SLOW, z, 0.0);
            call->sizes(it, z, it->size);
            singular = call->factor(it);
            error = relative_error(n, it->r, it->size);
            fresh = 1;
        }
        least = fmin(least, error);
        if (!singular) call->solve(it, it->r, it->dz);
        if (converged) { /* the last correction, without a residual after it */
            for (int i = 0; i < n && !singular; ++i) z[i] += it->dz[i];
            status = CONVERGED;
            break;
        }
        if (singular) {
            status = SINGULAR;
            break;
        }
        if (patient) memcpy(it->start, it->r, sizeof(double) * n);
        /* the longest of the halved steps that shrinks the residual */
        double t = 1.0, taken = 1.0, next = error;
        int accepted = 0, renewed = 0;
        for (int halvings = 0; halvings <= (fresh ? MAX_HALVINGS : 0) && !accepted;
             ++halvings, t *= 0.5) {
            taken = t;
            for (int i = 0; i < n; ++i) it->trial[i] = z[i] + t * it->dz[i];
            call->residual(it, iteration, it->trial);
            next = relative_error(n, it->r, it->size);
            accepted = next < (1.0 - 1e-4 * t) * error || next <= ACCEPT;
            renewed |= !accepted && fresh;
            if (renewed) accepted = accepted_there(it, call, patient, z, t, &error, &next);
        }
        if (!accepted && !fresh) { /* the factors are too old */
            call->residual(it, iteration, z);
            rate = INFINITY;
            continue;
        }
        if (!accepted) {
            status = isfinite(next) ? STALLED : NOT_FINITE;
            error = next;
            break;
        }
        for (int i = 0; i < n; ++i) z[i] += taken * it->dz[i]; /* the trial */
        exact = fresh;
        fresh = renewed;
        if (renewed) singular = call->factor(it);
        if (renewed || error > CLOSE) {
            call->sizes(it, z, it->size);
            next = relative_error(n, it->r, it->size);
        }
        rate = next / fmax(error, LEAST);
        error = next;
    }
    info[0] = iteration;
    info[1] = error;
    info[2] = 0.0;
    for (int i = 0; i < n; ++i)
        if (!(fabs(it->r[i]) <= info[2])) info[2] = fabs(it->r[i]);
    return status;
}
#endif
