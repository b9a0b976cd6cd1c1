/* Filter line search with a second-order correction.
 *
 * Equations (O...): doc/theory/interior_point.md; W&B: Waechter and Biegler (2006). */
#include "horizon.h"

struct trial {
    double violation, merit, cost;
};

/* Slope of the merit (O6) along the step. */
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

/* x <- retract(x, length dx), u <- u + length du. */
void ocp_move(const struct horizon *o, double length, double *x, double *u)
{
    const struct worker *worker = o->workers;
    ROOM_OF(d, worker);
    for (long k = 0; k <= o->steps; ++k) {
        for (int i = 0; i < N_DX; ++i) d[i] = length * o->dx[N_DX * k + i];
        call(&worker->retract, o->x + N_X * k, d, worker->arrays[P], 0, x + N_X * k, 0);
    }
    for (long i = 0; i < N_U * o->steps; ++i) u[i] = o->u[i] + length * o->du[i];
}

/* The trial at the part `length` of the step; 1 where it has no value, or violates too much. */
static int make_trial(struct horizon *o, double length, struct trial *t)
{
    ocp_move(o, length, o->x_trial, o->u_trial);
    ocp_move_slacks(o, length, o->s_trial, o->t_trial);
    ocp_predict(o, length, o->z_trial);
    const struct steps steps = {o->x_trial, o->u_trial, o->z_trial, o->y_trial};
    return ocp_at_all_steps(o, ocp_take_step, &steps) ||
           ocp_evaluate(o, o->x_trial, o->u_trial, o->y_trial, o->s_trial, o->t_trial,
                        &t->violation, &t->merit, &t->cost) ||
           t->violation > o->widest;
}

/* Whether no entry of the filter has both less violation and less merit, W&B (18). */
static int passes_filter(const struct horizon *o, const struct trial *t)
{
    for (long j = 0; j < o->entries; ++j)
        if (t->violation >= o->filter[2 * j] && t->merit >= o->filter[2 * j + 1]) return 0;
    return 1;
}

/* Two arrays change places. */
static void swap(double **a, double **b)
{
    double *t = *a;
    *a = *b;
    *b = t;
}

/* Gaps and values of the present iterate and those of the trial change places. */
void ocp_exchange(struct horizon *o)
{
    swap(&o->gap, &o->gap_trial);
    swap(&o->c, &o->c_trial);
    swap(&o->e, &o->e_trial);
}

/* Take a trial, W&B (18)-(20), at a part of a step of this slope if it is good enough; 1 where
 * it is. */
static int take(struct horizon *o, double length, double dual, double slope, const struct trial *t)
{
    const int descends = slope < 0 && o->violation <= o->narrow &&
                         length * pow(-slope, 2.3) > pow(o->violation, 1.1);
    const double less = (1 - 1e-5) * o->violation, lower = o->merit - 1e-5 * o->violation;
    const double armijo = o->merit + 1e-8 * length * slope + 1e-13 * fabs(o->merit);
    const int enough = descends ? t->merit <= armijo : t->violation <= less || t->merit <= lower;
    if (!enough || !passes_filter(o, t)) return 0;
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
    ocp_exchange(o);
    /* costates of the convex model are better than those of one that was not convex */
    ocp_move_multipliers(o, o->last_damping > 0.0 ? 1.0 : length, dual);
    o->violation = t->violation;
    o->merit = t->merit;
    o->cost = t->cost;
    o->length = length;
    return 1;
}

/* Gaps and residuals of the step of this length and its trial together (O20), W&B (27), in the
 * places of the present ones, which change places with `*_trial`. */
static void add_trial(struct horizon *o, double length)
{
    for (long i = 0; i < N_DX * o->steps; ++i) o->gap_trial[i] += length * o->gap[i];
    for (long r = 0; r < N_I * (o->steps + 1); ++r) {
        const double residual = o->c[r] + o->t[r] - o->s[r];
        o->c_trial[r] += o->t_trial[r] - o->s_trial[r] + length * residual - o->t[r] + o->s[r];
    }
    for (int r = 0; r < N_END; ++r) o->e_trial[r] += length * o->e[r];
}

/* The step with the curvature of the equations that the trial of this length has shown; 1 where
 * its trial is taken. Otherwise the step is as before. */
static int correct(struct horizon *o, double length, double tau, double slope)
{
    double primal, dual;
    struct trial t;
    add_trial(o, length);
    ocp_exchange(o);
    ocp_substitute(o);
    ocp_slack_steps(o, tau, &primal, &dual);
    ocp_exchange(o);
    if (!make_trial(o, primal, &t) && take(o, primal, dual, slope, &t)) return 1;
    ocp_substitute(o);
    ocp_slack_steps(o, tau, &primal, &dual);
    return 0;
}

/* Step lengths from `primal` on by halves; 1 where one is accepted, and taken. */
int ocp_search(struct horizon *o, double tau, double primal, double dual)
{
    const double slope = merit_slope(o);
    double length = primal;
    for (int i = 0; i < 14; ++i, length *= 0.5) {
        struct trial t;
        if (make_trial(o, length, &t)) continue;
        if (take(o, length, dual, slope, &t)) return 1;
        if (!i && o->violation <= o->narrow && t.violation >= o->violation &&
            correct(o, length, tau, slope))
            return 1;
    }
    return 0;
}
