/* Slacks s, t and multipliers lam of the inequalities, c + t = s: their start, their steps, and
 * their part in Newton's equation. Soft rows as in Frison and Diehl (2020).
 *
 * Equations (O...): doc/theory/interior_point.md; W&B: Waechter and Biegler (2006). */
#include "horizon.h"

/* Slack and multiplier of a row to start with at mu (O5). */
static void start_slack(struct horizon *o, long r, int i)
{
    o->s[r] = fmax(o->c[r], i < 2 * N_U || is_of_constants(o, i) ? 1e-8 : 1e-2);
    o->lam[r] = fmin(o->mu / o->s[r], o->weight[i] / 2);
}

/* Those of a problem solved before, on the central path (O5) at mu: the larger one stays. */
static void center(struct horizon *o, long r, int i)
{
    if (o->s[r] < o->lam[r]) o->s[r] = o->mu / o->lam[r];
    else o->lam[r] = fmin(o->mu / o->s[r], o->weight[i] / 2);
}

/* Slacks and multipliers to begin with: if `warm`, those of a problem solved before, of all rows
 * that it had. */
void ocp_begin_slacks(struct horizon *o, int warm)
{
    int any = 0;
    for (long k = 0; k <= o->steps; ++k) {
        ocp_inequalities(o, o->workers, k, o->x + N_X * k, o->u + N_U * k, o->c + N_I * k);
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            if (!holds_at(o, k, i)) {
                o->s[r] = o->lam[r] = o->t[r] = 0.0;
                continue;
            }
            any = 1;
            if (warm && o->s[r] > 0.0) center(o, r, i);
            else start_slack(o, r, i);
            o->t[r] = is_soft(o, i) ? o->mu / (o->weight[i] - o->lam[r]) : 0.0;
        }
    }
    if (!any) o->mu = o->mu_end; /* no barrier */
}

/* Whether the weight of hard row i grows: on the central path the row, mu / lam - mu / (weight -
 * lam), is violated where a multiplier is more than half of its weight. The weight shrinks where
 * all are less than a thirtieth. */
static void weigh_row(struct horizon *o, int i, double most, int *grown)
{
    const double before = o->weight[i], least = o->least_weight[i];
    if (most > before / 2 && before < WEIGHT_RANGE * least) {
        o->weight[i] = 10 * before;
        *grown = 1;
    } else if (most < before / 30 && before > least) {
        o->weight[i] = fmax(least, before / 10);
    } else {
        return;
    }
    for (long r = i; r < N_I * (o->steps + 1); r += N_I)
        if (holds_at(o, r / N_I, i)) o->t[r] = o->mu / (o->weight[i] - o->lam[r]);
}

/* The weights of hard rows, exact penalties, follow their multipliers; whether one has grown, so
 * that a solved problem must be solved again. */
int nh_ocp_weigh(struct horizon *o)
{
    int grown = 0;
    for (int i = 2 * N_U; i < N_I; ++i) {
        double most = 0.0;
        if (o->least_weight[i] == 0.0) continue;
        for (long k = 0; k <= o->steps; ++k)
            if (holds_at(o, k, i)) most = fmax(most, o->lam[N_I * k + i]);
        weigh_row(o, i, most, &grown);
    }
    return grown;
}

/* The products of (O5) that Newton's step is to reach: mu. */
void ocp_aim(struct horizon *o)
{
    for (long r = 0; r < N_I * (o->steps + 1); ++r) o->aim_s[r] = o->aim_t[r] = o->mu;
}

/* With the products of the step's parts, which Newton's equation leaves out (O19), at most
 * CORRECTION mu below and mu above: Mehrotra (1992). */
void ocp_aim_beyond(struct horizon *o)
{
    for (long r = 0; r < N_I * (o->steps + 1); ++r) {
        o->aim_s[r] = o->mu - fmin(fmax(o->ds[r] * o->dl[r], -CORRECTION * o->mu), o->mu);
        o->aim_t[r] = o->mu + fmax(fmin(o->dt[r] * o->dl[r], CORRECTION * o->mu), -o->mu);
    }
}

/* ds, dt (O17) and dlam (O8) of dx, du, and the longest steps that keep s, t, lam and weight - lam
 * above 1 - tau of themselves. */
void ocp_slack_steps(struct horizon *o, double tau, double *primal, double *dual)
{
    *primal = *dual = 1.0;
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            double stiffness;
            if (!holds_at(o, k, i)) continue;
            const double m = condense(o, k, i, &stiffness);
            const double slope = along(o, k, i, o->dx + N_DX * k, o->du + N_U * k);
            o->dl[r] = m - stiffness * slope - o->lam[r];
            o->ds[r] = (o->aim_s[r] - o->s[r] * o->dl[r]) / o->lam[r] - o->s[r];
            if (o->ds[r] < 0) *primal = fmin(*primal, -tau * o->s[r] / o->ds[r]);
            if (o->dl[r] < 0) *dual = fmin(*dual, -tau * o->lam[r] / o->dl[r]);
            if (!is_soft(o, i)) continue;
            const double left = o->weight[i] - o->lam[r];
            o->dt[r] = (o->aim_t[r] + o->t[r] * o->dl[r]) / left - o->t[r];
            if (o->dt[r] < 0) *primal = fmin(*primal, -tau * o->t[r] / o->dt[r]);
            if (o->dl[r] > 0) *dual = fmin(*dual, tau * left / o->dl[r]);
        }
}

/* s and t after the part `length` of (O17). */
void ocp_move_slacks(const struct horizon *o, double length, double *s, double *t)
{
    for (long r = 0; r < N_I * (o->steps + 1); ++r) {
        s[r] = o->s[r] + length * o->ds[r];
        t[r] = o->t[r] + length * o->dt[r];
    }
}

/* Costates and multipliers of inequalities by these parts of their steps, the latter kept near the
 * central path, W&B (16). */
void ocp_move_multipliers(struct horizon *o, double costates, double dual)
{
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            if (!holds_at(o, k, i)) continue;
            const double central = o->mu / o->s[r];
            o->lam[r] = fmin(fmax(o->lam[r] + dual * o->dl[r], central / 1e10), central * 1e10);
        }
    for (long i = 0; i < N_DX * o->steps; ++i) o->pi[i] += costates * (o->pi_next[i] - o->pi[i]);
    for (int r = 0; r < N_END; ++r) o->nu[r] += costates * (o->nu_next[r] - o->nu[r]);
}
