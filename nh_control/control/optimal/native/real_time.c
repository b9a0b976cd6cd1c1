/* Real-time iterations: Diehl, Bock and Schloeder (2005). `nh_ocp_prepare` linearizes at the
 * predicted trajectory and factorizes; `nh_ocp_feedback` takes some interior-point steps on that
 * model from the state that arrived; `nh_ocp_shift` moves to the next step.
 *
 * Equations (O...): doc/theory/interior_point.md. */
#include "horizon.h"
#include "real_time.h"

/* The matrices (O12), (O13) with enough damping to be positive definite. */
static int factorize_with_damping(struct horizon *o)
{
    double damping = 0.0;
    while (ocp_factorize(o, damping, o->curved)) {
        damping = fmax(8 * damping, 1e-4);
        if (damping > 1e10) return NOT_CONVEX;
    }
    return GOES_ON;
}

/* The problem at the predicted trajectory, and its factors. */
int nh_ocp_prepare(struct horizon *o)
{
    const struct steps steps = {o->x, o->u, o->z, o->y};
    memset(o->start, 0, sizeof(double) * N_DX);
    if (o->reuses && ocp_at_all_steps(o, ocp_take_step, &steps)) return STEP_FAILED;
    return ocp_expand(o) ? STEP_FAILED : factorize_with_damping(o);
}

/* The model with the state and the drift that have become known (O21). */
static void arrive(struct horizon *o)
{
    const struct worker *worker = o->workers;
    ROOM_OF(c, worker);
    call(&worker->local, o->x, o->state, worker->arrays[P], 0, o->start, 0);
    for (long k = 0; k < o->steps; ++k) {
        for (int i = 0; i < N_DX; ++i) o->gap[N_DX * k + i] += o->drift_next[i] - o->drift[i];
        if (!N_ROWS) continue;
        ocp_inequalities(o, worker, k, o->x + N_X * k, o->u + N_U * k, c);
        memcpy(o->c + N_I * k + 2 * N_U, c + 2 * N_U, sizeof(double) * N_ROWS);
    }
    memcpy(o->drift, o->drift_next, sizeof(double) * N_DX);
}

/* The linear-quadratic model after the part `length` of the step (O22). */
static void move_model(struct horizon *o, double length)
{
    ROOM_OF(y, o->workers);
    for (long k = 0; k <= o->steps; ++k) {
        const int n = k < o->steps ? N_Y : N_DX;
        const long square = (long)N_Y * N_Y * k;
        double *g = k < o->steps ? o->g + N_Y * k : o->g_end, *total = o->total + N_Y * k;
        const double *h = k < o->steps ? o->h + square : o->h_end;
        memcpy(y, o->dx + N_DX * k, sizeof(double) * N_DX);
        if (k < o->steps) memcpy(y + N_DX, o->du + N_U * k, sizeof(double) * N_U);
        for (int i = 0; i < n; ++i) {
            total[i] += length * y[i];
            g[i] += length * dot(n, h + n * i, y);
            if (o->curved && k < o->steps) g[i] += length * dot(n, o->bend + square + N_Y * i, y);
        }
        for (int i = 0; i < N_I; ++i)
            if (holds_at(o, k, i)) o->c[N_I * k + i] += length * along(o, k, i, y, y + N_DX);
        for (int i = 0; i < N_DX && k < o->steps; ++i) o->gap[N_DX * k + i] *= 1 - length;
    }
    for (int r = 0; r < N_END; ++r)
        o->e[r] += length * dot(N_DX, o->e_slope + N_DX * r, o->dx + N_DX * o->steps);
    for (int i = 0; i < N_DX; ++i) o->start[i] *= 1 - length;
}

/* `most` interior-point steps at the barrier mu on the model, from the state that arrived, the
 * first one by the factors of `nh_ocp_prepare`; then x, u move by their sum. */
int nh_ocp_feedback(struct horizon *o, int most)
{
    double primal, dual;
    arrive(o);
    memset(o->total, 0, sizeof(double) * N_Y * (o->steps + 1));
    for (int it = 0; it < most; ++it) {
        if (it && factorize_with_damping(o)) return NOT_CONVEX;
        ocp_newton_step(o, 1, 0.99, &primal, &dual);
        move_model(o, primal);
        ocp_move_slacks(o, primal, o->s, o->t);
        ocp_move_multipliers(o, primal, dual);
        o->length = primal;
    }
    for (long k = 0; k <= o->steps; ++k) {
        memcpy(o->dx + N_DX * k, o->total + N_Y * k, sizeof(double) * N_DX);
        if (k < o->steps) memcpy(o->du + N_U * k, o->total + N_Y * k + N_DX, sizeof(double) * N_U);
    }
    ocp_move(o, 1.0, o->x_trial, o->u_trial);
    memcpy(o->x, o->x_trial, sizeof(double) * N_X * (o->steps + 1));
    memcpy(o->u, o->u_trial, sizeof(double) * N_U * o->steps);
    for (long i = 0; i < N_U * o->steps; ++i)
        if (!isfinite(o->u[i])) return NO_STEP;
    nh_ocp_weigh(o);
    return GOES_ON;
}

/* Rows `from` + 1 ... `to` - 1 move up by one. */
static void up(double *rows, long width, long from, long to)
{
    memmove(rows + width * from, rows + width * (from + 1),
            sizeof(double) * width * (to - from - 1));
}

/* `count` steps later: everything moves up a node, and the last one repeats, behind the step of
 * its state. */
int nh_ocp_shift(struct horizon *o, int count)
{
    const long n = o->steps;
    const struct worker *worker = o->workers;
    for (int i = 0; i < count; ++i) {
        up(o->x, N_X, 0, n + 1);
        up(o->u, N_U, 0, n);
        up(o->z, o->nz, 0, n);
        up(o->pi, N_DX, 0, n);
        up(o->s, N_I, 0, n);
        up(o->t, N_I, 0, n);
        up(o->lam, N_I, 0, n);
        const double *x = o->x + N_X * (n - 1), *u = o->u + N_U * (n - 1);
        if (ocp_solve_step(o, worker, x, u, o->z + o->nz * (n - 1))) return STEP_FAILED;
        ocp_read_end(o, worker, x, o->x + N_X * n);
    }
    return GOES_ON;
}
