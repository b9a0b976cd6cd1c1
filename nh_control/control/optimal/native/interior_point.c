/* Primal-dual interior point with a filter line search: Waechter and Biegler (2006), whose numbers
 * of equations are given, on the Riccati recursion. */
#include "horizon.h"

/* Slacks and multipliers of the inequalities to start with at mu. */
static void start_slacks(struct horizon *o)
{
    for (long k = 0; k <= o->steps; ++k) {
        inequalities(o, k, o->x + N_X * k, o->u + N_U * k, o->c + N_I * k);
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            o->s[r] = o->lam[r] = o->t[r] = 0.0;
            if (!holds_at(o, k, i)) continue;
            o->s[r] = fmax(o->c[r], i < 2 * N_U ? 1e-8 : 1e-2);
            o->lam[r] = fmin(o->mu / o->s[r], o->weight[i] / 2);
            if (is_soft(o, i)) o->t[r] = o->mu / (o->weight[i] - o->lam[r]);
        }
    }
}

/* Slacks and multipliers of a problem solved before, on the central path at mu: of each pair the
 * larger one stays. */
static void center(struct horizon *o)
{
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            if (!holds_at(o, k, i)) continue;
            if (o->s[r] < o->lam[r]) o->s[r] = o->mu / o->lam[r];
            else o->lam[r] = fmin(o->mu / o->s[r], o->weight[i] / 2);
            if (is_soft(o, i)) o->t[r] = o->mu / (o->weight[i] - o->lam[r]);
        }
}

/* Begin at x, u with the unknowns z, and at the multipliers s, t, lam of a problem solved before
 * if `warm`; 1 where a step fails or a number is not finite. */
int ocp_start(struct horizon *o, int warm)
{
    if (warm) center(o);
    else start_slacks(o);
    memset(o->start, 0, sizeof(double) * N_DX);
    o->entries = o->failures = 0;
    o->damping = o->last_damping = 0.0;
    o->length = o->stationarity = o->complementarity = INFINITY;
    if (evaluate(o, o->x, o->u, o->s, o->t, o->z, o->y, &o->violation, &o->merit, &o->cost))
        return 1;
    o->widest *= fmax(1.0, o->violation);
    o->narrow = 1e-4 * fmax(1.0, o->violation);
    return 0;
}

/* Errors of stationarity, and of complementarity from mu, by (5): the larger one, both divided by
 * the mean size of multipliers above 100. */
static double errors(struct horizon *o, double mu)
{
    double stationarity = 0.0, complementarity = 0.0, sum = 0.0, r[N_Y];
    for (long k = 0; k <= o->steps; ++k) {
        const int n = k < o->steps ? N_Y : N_DX;
        memcpy(r, k < o->steps ? o->g + N_Y * k : o->g_end, sizeof(double) * n);
        if (k < o->steps)
            transposed_times_add(N_DX, N_Y, o->ab + (long)N_DX * N_Y * k, o->pi + N_DX * k, r);
        else if (N_END) transposed_times_add(N_END, N_DX, o->e_slope, o->nu, r);
        for (int i = 0; i < N_DX && k; ++i) {
            r[i] -= o->pi[N_DX * (k - 1) + i];
            sum += fabs(o->pi[N_DX * (k - 1) + i]);
        }
        for (int i = 0; i < N_I; ++i) {
            const double lam = o->lam[N_I * k + i];
            if (!holds_at(o, k, i)) continue;
            sum += lam;
            complementarity = fmax(complementarity, fabs(o->s[N_I * k + i] * lam - mu));
            if (is_soft(o, i))
                complementarity =
                    fmax(complementarity, fabs(o->t[N_I * k + i] * (o->weight[i] - lam) - mu));
            if (i < 2 * N_U) r[N_DX + i % N_U] -= i < N_U ? lam : -lam;
            const double *row = o->slopes + N_Y * (N_ROWS * k + i - 2 * N_U);
            for (int j = 0; j < n && i >= 2 * N_U; ++j) r[j] -= row[j] * lam;
        }
        for (int j = k ? 0 : N_DX; j < n; ++j) stationarity = fmax(stationarity, fabs(r[j]));
    }
    o->stationarity = stationarity;
    if (mu == 0.0) o->complementarity = complementarity;
    const double mean = sum / (o->steps * (N_DX + N_I));
    return fmax(stationarity, complementarity) / fmax(1.0, mean / 100);
}

/* Slope of the merit along the step. */
static double merit_slope(const struct horizon *o)
{
    double d = dot(N_DX, o->g_end, o->dx + N_DX * o->steps);
    for (long k = 0; k <= o->steps; ++k) {
        if (k < o->steps) {
            d += dot(N_DX, o->g + N_Y * k, o->dx + N_DX * k);
            d += dot(N_U, o->g + N_Y * k + N_DX, o->du + N_U * k);
        }
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            if (!holds_at(o, k, i)) continue;
            d -= o->mu * o->ds[r] / o->s[r];
            if (is_soft(o, i)) d += (o->weight[i] - o->mu / o->t[r]) * o->dt[r];
        }
    }
    return d;
}

INTERNAL void move(const struct horizon *o, double length, double *x, double *u)
{
    double d[N_DX];
    for (long k = 0; k <= o->steps; ++k) {
        for (int i = 0; i < N_DX; ++i) d[i] = length * o->dx[N_DX * k + i];
        o->retract(o->x + N_X * k, d, o->arrays[P], x + N_X * k);
    }
    for (long i = 0; i < N_U * o->steps; ++i) u[i] = o->u[i] + length * o->du[i];
}

INTERNAL void move_slacks(const struct horizon *o, double length, double *s, double *t)
{
    for (long r = 0; r < N_I * (o->steps + 1); ++r) {
        s[r] = o->s[r] + length * o->ds[r];
        t[r] = o->t[r] + length * o->dt[r];
    }
}

/* Costates by the primal length; multipliers of inequalities by the dual one, kept near the
 * central path (16). */
INTERNAL void move_multipliers(struct horizon *o, double primal, double dual)
{
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            if (!holds_at(o, k, i)) continue;
            const double central = o->mu / o->s[r];
            o->lam[r] = fmin(fmax(o->lam[r] + dual * o->dl[r], central / 1e10), central * 1e10);
        }
    for (long i = 0; i < N_DX * o->steps; ++i) o->pi[i] += primal * (o->pi_next[i] - o->pi[i]);
    for (int r = 0; r < N_END; ++r) o->nu[r] += primal * (o->nu_next[r] - o->nu[r]);
}

static int passes_filter(const struct horizon *o, double violation, double merit)
{
    for (long j = 0; j < o->entries; ++j)
        if (violation >= o->filter[2 * j] && merit >= o->filter[2 * j + 1]) return 0;
    return 1;
}

static void swap(double **a, double **b)
{
    double *t = *a;
    *a = *b;
    *b = t;
}

/* Step lengths from `primal` on by halves (18)-(20); 1 where one is accepted, and taken. */
static int search(struct horizon *o, double primal, double dual)
{
    const double slope = merit_slope(o);
    double violation, merit, cost, length = primal;
    for (int i = 0; i < 14; ++i, length *= 0.5) {
        move(o, length, o->x_trial, o->u_trial);
        move_slacks(o, length, o->s_trial, o->t_trial);
        if (evaluate(o, o->x_trial, o->u_trial, o->s_trial, o->t_trial, o->z_trial, o->y_trial,
                     &violation, &merit, &cost) ||
            violation > o->widest)
            continue;
        const int descends = slope < 0 && o->violation <= o->narrow &&
                             length * pow(-slope, 2.3) > pow(o->violation, 1.1);
        const double less = (1 - 1e-5) * o->violation, lower = o->merit - 1e-5 * o->violation;
        const double armijo = o->merit + 1e-8 * length * slope + 1e-13 * fabs(o->merit);
        const int enough = descends ? merit <= armijo : violation <= less || merit <= lower;
        if (!enough || !passes_filter(o, violation, merit)) continue;
        if (!descends && o->entries < FILTER) {
            o->filter[2 * o->entries] = less;
            o->filter[2 * o->entries++ + 1] = lower;
        }
        swap(&o->x, &o->x_trial);
        swap(&o->u, &o->u_trial);
        swap(&o->z, &o->z_trial);
        swap(&o->y, &o->y_trial);
        swap(&o->s, &o->s_trial);
        swap(&o->t, &o->t_trial);
        move_multipliers(o, length, dual);
        o->violation = violation;
        o->merit = merit;
        o->cost = cost;
        o->length = length;
        return 1;
    }
    return 0;
}

/* Smaller barriers (7) while the present one's problem is solved to 10 mu; 1 where one is. */
static int lower_barrier(struct horizon *o)
{
    int lowered = 0;
    while (o->mu > o->mu_end && fmax(errors(o, o->mu), o->violation) <= 10 * o->mu) {
        o->mu = fmax(o->mu_end, fmin(0.2 * o->mu, pow(o->mu, 1.5)));
        lowered = 1;
    }
    return lowered;
}

/* Gaps, residuals and errors of the present iterate. */
int ocp_measure(struct horizon *o)
{
    if (expand(o)) return STEP_FAILED;
    errors(o, 0.0);
    return GOES_ON;
}

/* One iteration: derivatives, errors, Newton's step with enough damping, search. */
int ocp_iterate(struct horizon *o)
{
    if (expand(o)) return STEP_FAILED;
    if (fmax(errors(o, 0.0), o->violation) <= o->tolerance) return OPTIMAL;
    if (lower_barrier(o)) {
        o->entries = 0;
        if (evaluate(o, o->x, o->u, o->s, o->t, o->z, o->y, &o->violation, &o->merit, &o->cost))
            return STEP_FAILED;
    }
    double primal, dual, damping = o->damping;
    while (factorize(o, damping)) {
        damping = damping > 0.0 ? 8 * damping : fmax(1e-4, o->last_damping / 3);
        if (damping > 1e10) return NOT_CONVEX;
    }
    if (damping > o->damping) o->last_damping = damping;
    substitute(o);
    slack_steps(o, fmax(0.99, 1 - o->mu), &primal, &dual);
    if (!search(o, primal, dual)) {
        if (++o->failures > 15) return NO_STEP;
        o->damping = fmax(10 * fmax(o->damping, damping), 1e-3);
        o->entries = 0;
        o->length = 0.0;
        return GOES_ON;
    }
    o->failures = 0;
    o->damping = o->damping > 1e-6 ? o->damping / 10 : 0.0;
    return GOES_ON;
}
