#ifndef NH_STEP_EQUATION_H
#define NH_STEP_EQUATION_H
/* The equation of a step: newton.h iterates, system.h has the sizes and the functions.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "linear_algebra.h"
#include "newton.h"

#if defined(__GNUC__)
#define SELDOM __attribute__((noinline, cold))
#else
#define SELDOM
#endif

/* Numbers of room that a step takes. */
#define STEP_ROOM ((size_t)(11 * N_Z + N_DOMAIN))
#ifdef SIZES_ARE_DATA
#define STEP_ROOM_OF(room, a) double *room = (a)[ROOM]
#else /* on the stack, where compilers see that nothing else writes to it */
#define STEP_ROOM_OF(room, a) double room[STEP_ROOM + 1]
#endif

/* r(x, u, z, p) = 0 of a step, with its Jacobian J and the factors of one, (N_Z, N_Z). `fixed`:
 * sizes of r's terms in x and u. `dropped`: sizes of rows that are round-off, 0 of others. Room
 * for N_Z numbers: `terms`, `passed` and `added`. */
struct step_equation {
    const struct system *system;
    const double *x, *u, *p;
    double *fixed, *J, *factors, *dropped, *terms, *passed, *added;
    int *pivots;
};

/* r of (S6). */
NEWTON_INLINE void step_residual(const struct newton *it, int iteration, const double *z)
{
    const struct step_equation *step = it->equation;
    (void)iteration;
    call_residual(step->system, step->x, step->u, z, step->p, it->r);
}

/* r_z at z. */
NEWTON_INLINE void step_jacobian(const struct newton *it, enum newton_cause cause, const double *z)
{
    const struct step_equation *step = it->equation;
    (void)cause;
    call_jacobian(step->system, step->x, step->u, z, step->p, step->J);
}

/* The sizes s_i (S2), at least `dropped`. */
NEWTON_INLINE void step_sizes(const struct newton *it, const double *z, double *size)
{
    const struct step_equation *step = it->equation;
    const struct system *system = step->system;
    (void)system;
    const double *J = step->J;
    for (int i = 0; i < N_Z; ++i, J += N_Z) {
        double sum = step->fixed[i];
        for (int j = 0; j < N_Z; ++j) sum += fabs(J[j]) * fabs(z[j]);
        if (sum < step->dropped[i]) sum = step->dropped[i];
        if (sum < LEAST) sum = LEAST;
        /* an infinite slope does not tell how far r is from zero */
        size[i] = sum < INFINITY ? sum : NAN;
    }
}

/* Factors of r_z (S1). */
NEWTON_INLINE int step_factor(const struct newton *it)
{
    struct step_equation *step = it->equation;
    const struct system *system = step->system;
    memcpy(step->factors, step->J, sizeof(double) * N_Z * N_Z);
    return factor(system, step->factors, step->pivots);
}

/* y = -r_z^{-1} r (S3). */
NEWTON_INLINE void step_solve(const struct newton *it, const double *r, double *y)
{
    const struct step_equation *step = it->equation;
    const struct system *system = step->system;
    for (int i = 0; i < N_Z; ++i) y[i] = -r[i];
    substitute(system, step->factors, step->pivots, y);
}

/* New factors cost no more than three iterations with old ones. */
NEWTON_INLINE int step_factors_pay(const struct newton *it, double error, double rate)
{
    (void)it;
    return error * (rate * rate * rate) > TOLERANCE;
}

/* Drops rows of round-off: among the rows dropped before, and the rows that a step t dz with new
 * factors does not shrink, those no larger than the round-off of all their terms, or of the terms
 * of the elimination for the correction dz, |P^T| |L| |U| |dz| (S5). */
SELDOM static void step_drop_round_off(const struct newton *it, enum newton_cause cause,
                                       const double *z, double t)
{
    struct step_equation *step = it->equation;
    const struct system *system = step->system;
    const double *factors = step->factors;
    double *terms = step->terms, *passed = step->passed, *added = step->added;
    (void)system;
    call_terms(system, step->x, step->u, z, step->p, terms);
    memcpy(added, it->dz, sizeof(double) * N_Z);
    if (N_RANK < N_Z) lu_exchange(N_Z, step->pivots + N_Z, 0, added);
    for (int i = 0; i < N_Z; ++i) {
        passed[i] = 0.0;
        for (int j = i; j < N_RANK; ++j)
            passed[i] += fabs(factors[(size_t)N_Z * i + j] * added[j]);
    }
    for (int i = 0; i < N_Z; ++i) {
        added[i] = i < N_RANK ? passed[i] : 0.0;
        for (int j = 0; j < i && j < N_RANK; ++j)
            added[i] += fabs(factors[(size_t)N_Z * i + j]) * passed[j];
    }
    lu_exchange(N_Z, step->pivots, 1, added);
    for (int i = 0; i < N_Z; ++i) {
        const double stuck =
            cause == SLOW ? INFINITY : (1.0 - (1.0 - REFRESH) * t) * fabs(it->start[i]);
        if (!isfinite(terms[i])) terms[i] = 0.0;
        if (isfinite(added[i]) && terms[i] < added[i]) terms[i] = added[i];
        const int drops = (step->dropped[i] > 0.0 || fabs(it->r[i]) > stuck) &&
                          fabs(it->r[i]) <= TOLERANCE * terms[i];
        step->dropped[i] = drops ? terms[i] : 0.0;
        if (it->size[i] < step->dropped[i]) it->size[i] = step->dropped[i];
    }
}

static const struct newton_callbacks STEP = {
    step_residual, step_jacobian,    step_sizes,          step_factor,
    step_solve,    step_factors_pay, step_drop_round_off,
};

/* The solution of a[X], a[U], a[P] in a[Z], from zero or from the guess there. a[SIZES]: sizes of
 * r's terms in x and u; other guesses than FROM_LAST_STEPS keep those of the last step. */
NEWTON_INLINE int iterate(const struct system *system, double *const *a, int patient,
                          enum start begin, double *room)
{
    const double *x = a[X], *u = a[U], *p = a[P];
    double *z = a[Z], *fixed = a[SIZES], *r = room, *size = r + N_Z, *dz = size + N_Z,
           *trial = dz + N_Z, *start = trial + N_Z, *larger = start + N_Z, *after = larger + N_Z,
           *dropped = after + N_Z, *terms = dropped + N_Z, *passed = terms + N_Z,
           *added = passed + N_Z;
    struct step_equation step = {system,     x,       u,     p,      fixed, a[R_Z],
                                 a[FACTORS], dropped, terms, passed, added, (int *)a[PIVOTS]};
    const struct newton it = {N_Z, &step, r, size, dz, trial, start, larger, after};
    memset(dropped, 0, sizeof(double) * N_Z);
    if (begin == FROM_ZERO || begin == FROM_LAST_STEPS) {
        call_start(system, x, u, p, fixed, r, a[R_Z]);
        for (int i = 0; i < N_Z; ++i)
            if (!isfinite(fixed[i])) fixed[i] = 0.0;
    }
    if (begin == FROM_ZERO) memset(z, 0, sizeof(double) * N_Z);
    else {
        call_residual(system, x, u, z, p, r);
        call_jacobian(system, x, u, z, p, a[R_Z]);
    }
    step_sizes(&it, z, size);
    const int singular = step_factor(&it);
    const struct newton_start from = {relative_error(N_Z, r, size), 1.0, 1, singular};
    return newton_iteration(&it, &STEP, patient, from, z, a[INFO]);
}

/* Whether a patient attempt may find a solution. */
static int may_have_a_solution(int status) { return status == STALLED || status == EXHAUSTED; }

/* The next state of (S6) from a solution in a[Z], and whether it lies in the model's domain, of
 * which there is room for N_DOMAIN numbers. State and input must be finite even where no equation
 * contains them. */
__attribute__((unused)) static int read_out(const struct system *system, double *const *a,
                                            double *domain)
{
    call_readout(system, a[X], a[U], a[Z], a[P], a[X1], domain);
    if (!all_finite(N_X, a[X]) || !all_finite(N_U, a[U]) || !all_finite(N_X, a[X1]))
        return NOT_FINITE;
    for (int i = 0; i < N_DOMAIN; ++i)
        if (!(domain[i] > 0.0)) return i < N_DOMAIN - N_TURNS ? OUTSIDE : HALF_TURN;
    return CONVERGED;
}
#endif
