/* Primal-dual interior point on the Riccati recursion.
 *
 * Equations (O...): doc/theory/interior_point.md; W&B: Waechter and Biegler (2006). */
#include "horizon.h"

/* Put all states but the first one on their manifold. */
int nh_ocp_project(struct horizon *o)
{
    memset(o->dx, 0, sizeof(double) * N_DX * (o->steps + 1));
    ocp_move(o, 1.0, o->x_trial, o->u_trial);
    memcpy(o->x + N_X, o->x_trial + N_X, sizeof(double) * N_X * o->steps);
    return GOES_ON;
}

/* Unknowns and ends of the steps from node k on, each found without a guess; the node of the first
 * step that fails, N where all are found. */
int nh_ocp_unknowns(struct horizon *o, int k)
{
    for (; k < o->steps; ++k)
        if (ocp_find_unknowns(o, k)) break;
    return k;
}

/* Begin at x, u with the unknowns z and ends y of the steps, and at the multipliers s, t, lam of a
 * problem solved before if `warm`; 1 where a number is not finite. */
int nh_ocp_start(struct horizon *o, int warm)
{
    ocp_begin_slacks(o, warm);
    memset(o->start, 0, sizeof(double) * N_DX);
    o->entries = o->failures = 0;
    o->mixed = -1;
    o->damping = o->last_damping = 0.0;
    o->length = o->stationarity = o->complementarity = INFINITY;
    if (ocp_evaluate(o, o->x, o->u, o->y, o->s, o->t, &o->violation, &o->merit, &o->cost))
        return 1;
    ocp_exchange(o);
    o->widest *= fmax(1.0, o->violation);
    o->narrow = 1e-4 * fmax(1.0, o->violation);
    return 0;
}

/* Of the gradient r by the first state its parts E^T r along the moves that are free; room x. */
static void keep_free(const struct horizon *o, double *r, double *x)
{
    memcpy(x, r, sizeof(double) * N_DX);
    memset(r, 0, sizeof(double) * N_DX);
    for (int j = 0; j < o->n_free; ++j)
        for (int i = 0; i < N_DX; ++i) r[j] += o->moves[o->n_free * i + j] * x[i];
}

/* The largest error of stationarity (O18); W&B (5) divide it and the others by what is returned,
 * the mean size of multipliers above 100. */
static double stationarity(struct horizon *o)
{
    double most = 0.0, sum = 0.0;
    ROOM_OF(r, o->workers);
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
            if (i < 2 * N_U) r[N_DX + i % N_U] -= i < N_U ? lam : -lam;
            const double *row = o->slopes + N_Y * (N_ROWS * k + i - 2 * N_U);
            for (int j = 0; j < n && i >= 2 * N_U; ++j) r[j] -= row[j] * lam;
        }
        if (!k) keep_free(o, r, r + N_Y);
        for (int j = 0; j < n; ++j) most = fmax(most, fabs(r[j]));
    }
    o->stationarity = most;
    return fmax(1.0, sum / (o->steps * (N_DX + N_I)) / 100);
}

/* The largest error of complementarity from mu (O18). */
static double complementarity(const struct horizon *o, double mu)
{
    double most = 0.0;
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            if (!holds_at(o, k, i)) continue;
            most = fmax(most, fabs(o->s[r] * o->lam[r] - mu));
            if (is_soft(o, i)) most = fmax(most, fabs(o->t[r] * (o->weight[i] - o->lam[r]) - mu));
        }
    return most;
}

/* Errors of the present iterate (O18); the number that divides them, W&B (5). */
static double measure(struct horizon *o)
{
    o->complementarity = complementarity(o, 0.0);
    return stationarity(o);
}

/* Smaller barriers, W&B (7), while the present one's problem is solved to 10 mu. */
static void lower_barrier(struct horizon *o, double scale)
{
    const double before = o->mu;
    while (o->mu > o->mu_end && fmax(fmax(o->stationarity, complementarity(o, o->mu)) / scale,
                                     o->violation) <= 10 * o->mu)
        o->mu = fmax(o->mu_end, fmin(0.2 * o->mu, pow(o->mu, 1.5)));
    if (o->mu == before) return;
    o->entries = 0;
    o->merit = ocp_merit(o, o->cost, o->s, o->t);
}

/* Gaps, residuals and errors of the present iterate. */
int nh_ocp_measure(struct horizon *o)
{
    if (ocp_expand(o)) return STEP_FAILED;
    measure(o);
    return GOES_ON;
}

/* Newton's step by the factors (O14)-(O17), and once more with the aims (O19) if that step is
 * longer. */
void ocp_newton_step(struct horizon *o, int corrected, double tau, double *primal, double *dual)
{
    double longer[2];
    ocp_aim(o);
    ocp_substitute(o);
    ocp_slack_steps(o, tau, primal, dual);
    if (fmin(*primal, *dual) == 1.0 || !corrected) return;
    ocp_aim_beyond(o);
    ocp_substitute(o);
    ocp_slack_steps(o, tau, longer, longer + 1);
    if (fmin(longer[0], longer[1]) > fmin(*primal, *dual)) {
        *primal = longer[0];
        *dual = longer[1];
        return;
    }
    ocp_aim(o);
    ocp_substitute(o);
    ocp_slack_steps(o, tau, primal, dual);
}

/* The factors of a convex model: with enough damping, or, where much would be needed, without the
 * curvature of steps and rows, which depends on meaningless multipliers far from an optimum.
 * 1 where there is none. */
static int make_convex(struct horizon *o, double *damping)
{
    long curved = o->curved;
    *damping = o->damping;
    while (ocp_factorize(o, *damping, curved)) {
        *damping = *damping > 0.0 ? 8 * *damping : fmax(1e-4, o->last_damping / 3);
        if (*damping > 1e10) return 1;
        if (*damping <= MOST_DAMPING || !curved) continue;
        curved = 0;
        *damping = o->damping;
    }
    if (*damping > o->damping) o->last_damping = *damping;
    return 0;
}

/* Keep the step that was taken: the part `length` of (dx, du), then the change of the costates,
 * which are subtracted already. */
static void keep_step(struct horizon *o)
{
    double *pi = o->total + N_Y * (o->steps + 1);
    for (long i = 0; i < N_DX * o->steps; ++i) pi[i] += o->pi[i];
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < (k < o->steps ? N_Y : N_DX); ++i)
            o->total[N_Y * k + i] =
                o->length * (i < N_DX ? o->dx[N_DX * k + i] : o->du[N_U * k + i - N_DX]);
}

/* The length of a step without second derivatives (O24): where it turns back on the one before,
 * the curvature along it is e times the model's, and 1 / e ends there. */
static double relaxation(const struct horizon *o)
{
    double before = 0.0, now = 0.0, both = 0.0;
    if (!isfinite(o->length) || o->length <= 0.0) return 1.0;
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < (k < o->steps ? N_Y : N_DX); ++i) {
            const double a = o->total[N_Y * k + i];
            const double b = i < N_DX ? o->dx[N_DX * k + i] : o->du[N_U * k + i - N_DX];
            before += a * a;
            now += b * b;
            both += a * b;
        }
    if (!(both < -TURNED_BACK * sqrt(before * now))) return 1.0;
    return fmin(1.0, 1.0 / (1.0 / o->length - both / before));
}

/* A step without second derivatives, mixed with those before it near a feasible point of the last
 * barrier's problem, else shorter if it turns back. */
static void improve(struct horizon *o, double tau, double *primal, double *dual)
{
    double *pi = o->total + N_Y * (o->steps + 1);
    int mixes = 0;
    if (o->mu > o->mu_end || o->violation > o->narrow || o->length == 0.0) o->mixed = -1;
    else mixes = ocp_mix(o);
    if (mixes) ocp_slack_steps(o, tau, primal, dual);
    else *primal = fmin(*primal, relaxation(o));
    for (long i = 0; i < N_DX * o->steps; ++i) pi[i] = -o->pi[i];
}

/* One iteration: derivatives, errors, Newton's step with enough damping, search. */
int nh_ocp_iterate(struct horizon *o)
{
    if (ocp_expand(o)) return STEP_FAILED;
    const double scale = measure(o), error = fmax(o->stationarity, o->complementarity) / scale;
    if (fmax(error, o->violation) <= o->tolerance) return OPTIMAL;
    lower_barrier(o, scale);
    double primal, dual, damping;
    const double tau = fmax(0.99, 1 - o->mu);
    if (make_convex(o, &damping)) return NOT_CONVEX;
    ocp_newton_step(o, !o->curved, tau, &primal, &dual);
    if (!o->curved) improve(o, tau, &primal, &dual);
    if (!ocp_search(o, tau, primal, dual)) {
        if (++o->failures > 15) return NO_STEP;
        o->damping = fmax(10 * fmax(o->damping, damping), 1e-3);
        o->entries = 0;
        o->length = 0.0;
        return GOES_ON;
    }
    o->failures = 0;
    keep_step(o);
    o->damping = o->damping > 1e-6 ? o->damping / 10 : 0.0;
    return GOES_ON;
}

/* Newton's equation of the present iterate, whose derivatives are known, without damping. */
int nh_ocp_factorize(struct horizon *o)
{
    ocp_aim(o);
    return ocp_factorize(o, 0.0, o->curved) ? NOT_CONVEX : GOES_ON;
}

/* Its solution for the present gradients, gaps and start. */
int nh_ocp_substitute(struct horizon *o)
{
    ocp_substitute(o);
    return GOES_ON;
}
