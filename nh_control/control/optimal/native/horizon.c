/* Values and derivatives of the problem (O1), (O2) along a trajectory.
 *
 * Equations (O...): doc/theory/interior_point.md. */
#include "horizon.h"

/* c_k of (O2): the limits of inputs, then the other rows. */
void ocp_inequalities(const struct horizon *o, const struct worker *worker, long k,
                      const double *x, const double *u, double *c)
{
    for (int i = 0; i < N_U && k < o->steps; ++i) {
        c[i] = u[i] - o->lower[i];
        c[N_U + i] = o->upper[i] - u[i];
    }
    if (!N_ROWS) return;
    call(&worker->rows, x, k < o->steps ? u : o->no_input, o->w + N_NODE * k, 0, c + 2 * N_U, 0);
    for (int i = 0; i < N_ROWS; ++i) c[2 * N_U + i] += o->offset[i];
}

/* x, u, and unknowns z as a guess, into the arrays; the parameters among the constants to their
 * places. */
static void load(const struct horizon *o, const struct worker *worker, const double *x,
                 const double *u, const double *z)
{
    double *const *a = worker->arrays;
    memcpy(a[X], x, sizeof(double) * N_STEP_X);
    for (int i = 0; i < N_PARAMETERS; ++i) a[P][(int)o->places[i]] = x[N_STEP_X + i];
    memcpy(a[U], u, sizeof(double) * N_U);
    memcpy(a[Z], z, sizeof(double) * o->nz);
    *a[WARM] = 1.0;
}

/* The end y of the step from x that is in the arrays: constants stay. */
void ocp_read_end(const struct horizon *o, const struct worker *worker, const double *x, double *y)
{
    memcpy(y, worker->arrays[X1], sizeof(double) * N_STEP_X);
    memcpy(y + N_STEP_X, x + N_STEP_X, sizeof(double) * (N_X - N_STEP_X));
}

/* The step from x under u, from unknowns z that are near. */
int ocp_solve_step(const struct horizon *o, const struct worker *worker, const double *x,
                   const double *u, const double *z)
{
    load(o, worker, x, u, z);
    const int failed = o->step(worker->arrays);
    *worker->arrays[WARM] = 0.0;
    return failed;
}

/* Unknowns and end of step k, from the arrays to their places. */
static void store(const struct horizon *o, const struct worker *worker, const double *x, double *z,
                  double *y)
{
    memcpy(z, worker->arrays[Z], sizeof(double) * o->nz);
    ocp_read_end(o, worker, x, y);
}

/* Unknowns and end of step k of the present trajectory, found without a guess. */
int ocp_find_unknowns(const struct horizon *o, long k)
{
    const struct worker *worker = o->workers;
    const double *x = o->x + N_X * k;
    load(o, worker, x, o->u + N_U * k, o->z + o->nz * k);
    *worker->arrays[WARM] = 0.0;
    if (o->step(worker->arrays)) return 1;
    store(o, worker, x, o->z + o->nz * k, o->y + N_X * k);
    return 0;
}

/* Unknowns and end of step k, from unknowns that are near. */
int ocp_take_step(const struct horizon *o, const struct worker *worker, const struct steps *s,
                  long k)
{
    const double *x = s->x + N_X * k;
    double *z = s->z + o->nz * k;
    if (ocp_solve_step(o, worker, x, s->u + N_U * k, z)) return 1;
    store(o, worker, x, z, s->y + N_X * k);
    return 0;
}

/* The merit (O6) of a cost and of slacks s, t. */
double ocp_merit(const struct horizon *o, double cost, const double *s, const double *t)
{
    double merit = 0.0;
    for (long k = 0; k <= o->steps; ++k)
        for (int i = 0; i < N_I; ++i) {
            const long r = N_I * k + i;
            if (!holds_at(o, k, i)) continue;
            merit -= o->mu * log(s[r]);
            if (is_soft(o, i)) merit += o->weight[i] * t[r] - o->mu * log(t[r]);
        }
    return merit + cost;
}

/* Cost (O1), violation (O7) and merit (O6) of a trajectory with the ends y of its steps and with
 * slacks s, t; 1 where a number is not finite. Gaps and values are in gap_trial, c_trial,
 * e_trial. */
int ocp_evaluate(struct horizon *o, const double *x, const double *u, const double *y,
                 const double *s, const double *t, double *violation, double *merit, double *cost)
{
    double v;
    const struct worker *worker = o->workers;
    *violation = *cost = 0.0;
    for (long k = 0; k <= o->steps; ++k) {
        const double *xk = x + N_X * k, *uk = u + N_U * k, *w = o->w + N_NODE * k;
        double *gap = o->gap_trial + N_DX * k, *c = o->c_trial + N_I * k;
        if (k < o->steps) {
            call(&worker->local, xk + N_X, y + N_X * k, worker->arrays[P], 0, gap, 0);
            for (int i = 0; i < N_DX; ++i) *violation += fabs(gap[i] += o->drift[i]);
            call(&worker->stage, xk, uk, w, 0, &v, 0);
        } else {
            call(&worker->terminal, xk, w, 0, 0, &v, 0);
        }
        *cost += v;
        ocp_inequalities(o, worker, k, xk, uk, c);
        for (int i = 0; i < N_I; ++i) {
            if (!holds_at(o, k, i)) continue;
            const long r = N_I * k + i;
            *violation += fabs(c[i] + (is_soft(o, i) ? t[r] : 0.0) - s[r]);
        }
    }
    if (N_END) call(&worker->end, x + N_X * o->steps, o->goal, 0, 0, o->e_trial, 0);
    for (int i = 0; i < N_END; ++i) *violation += fabs(o->e_trial[i]);
    *merit = ocp_merit(o, *cost, s, t);
    return !isfinite(*merit) || !isfinite(*violation);
}

/* The step is in the arrays. */
static int solved(double *const *a)
{
    (void)a;
    return CONVERGED;
}

/* The column of a step's derivatives by variable j of (dx, du), -1 for a constant that it does not
 * depend on: the step has (dx, du, all parameters). */
static int column(const struct horizon *o, int j)
{
    if (j < N_STEP_DX) return j;
    if (j >= N_DX) return j - N_DX + N_STEP_DX;
    return j - N_STEP_DX < N_PARAMETERS ? N_STEP_DX + N_U + (int)o->places[j - N_STEP_DX] : -1;
}

/* The unknowns at the part `length` of Newton's step, to first order. */
void ocp_predict(const struct horizon *o, double length, double *z)
{
    memcpy(z, o->z, sizeof(double) * o->nz * o->steps);
    for (long k = 0; k < o->steps; ++k)
        for (int j = 0; j < N_Y; ++j) {
            const double d = length * (j < N_DX ? o->dx[N_DX * k + j] : o->du[N_U * k + j - N_DX]);
            const int c = column(o, j);
            for (long i = o->nz * k; i < o->nz * (k + 1) && c >= 0; ++i)
                z[i] += o->dz[N_COLUMNS * i + c] * d;
        }
}

/* First derivatives by the step's variables as those by (dx, du); constants stay. */
static void scatter(const struct horizon *o, const double *from, double *to)
{
    if (N_COLUMNS == N_Y && N_DX == N_STEP_DX) {
        memcpy(to, from, sizeof(double) * N_DX * N_Y);
        return;
    }
    memset(to, 0, sizeof(double) * N_DX * N_Y);
    for (int j = 0; j < N_Y; ++j) {
        const int c = column(o, j);
        for (int i = 0; i < N_STEP_DX && c >= 0; ++i) to[N_Y * i + j] = from[N_COLUMNS * i + c];
    }
    for (int i = N_STEP_DX; i < N_DX; ++i) to[(N_Y + 1) * i] = 1.0;
}

/* Second derivatives by the step's variables as those by (dx, du). */
static void scatter_square(const struct horizon *o, const double *from, double *to)
{
    if (N_COLUMNS == N_Y && N_DX == N_STEP_DX) {
        memcpy(to, from, sizeof(double) * N_Y * N_Y);
        return;
    }
    memset(to, 0, sizeof(double) * N_Y * N_Y);
    for (int i = 0; i < N_Y; ++i)
        for (int j = 0; j < N_Y; ++j) {
            const int r = column(o, i), c = column(o, j);
            if (r >= 0 && c >= 0) to[N_Y * i + j] = from[N_COLUMNS * r + c];
        }
}

/* d f / d(x, u) of step k and, where they count, its second derivatives with the costates. */
static int differentiate(const struct horizon *o, const struct worker *worker, long k)
{
    double *const *a = worker->arrays;
    const int curved = o->curved && o->hessian;
    load(o, worker, o->x + N_X * k, o->u + N_U * k, o->z + o->nz * k);
    if (o->reuses) memcpy(a[X1], o->y + N_X * k, sizeof(double) * N_STEP_X);
    if (curved) {
        memcpy(a[LAM], o->pi + N_DX * k, sizeof(double) * N_STEP_DX);
        memset(a[LAM_Z], 0, sizeof(double) * o->nz);
    }
    const step_routine step = o->reuses ? solved : o->step;
    const int failed = curved ? o->hessian(o->linearize, step, a) : o->linearize(step, a);
    *a[WARM] = 0.0;
    if (failed) return 1;
    memcpy(o->z + o->nz * k, a[Z], sizeof(double) * o->nz);
    memcpy(o->dz + o->nz * N_COLUMNS * k, a[DZ], sizeof(double) * o->nz * N_COLUMNS);
    scatter(o, a[AB], o->ab + (long)N_DX * N_Y * k);
    if (curved) scatter_square(o, a[HESSIAN], o->bend + (long)N_Y * N_Y * k);
    return 0;
}

/* The gap behind step k (O3), and [A B] in the coordinates about the next state (O4). */
static void close_gap(const struct horizon *o, const struct worker *worker, long k)
{
    const long size = (long)N_DX * N_Y;
    ROOM_OF(y, worker);
    double *slope = y + N_X, *ab = slope + N_DX * N_DX;
    double *gap = o->gap + N_DX * k, *out = o->ab + size * k, far = 0.0;
    const double *next = o->x + N_X * (k + 1);
    ocp_read_end(o, worker, o->x + N_X * k, y);
    call(&worker->local, next, y, worker->arrays[P], 0, gap, 0);
    for (int i = 0; i < N_DX; ++i) far = fmax(far, fabs(gap[i]));
    for (int i = 0; i < N_DX; ++i) gap[i] += o->drift[i];
    if (far < 1e-12) return;
    call(&worker->transport, next, y, 0, 0, slope, 0);
    memcpy(ab, out, sizeof(double) * size);
    memset(out, 0, sizeof(double) * size);
    multiply(N_DX, N_DX, N_Y, 0, slope, N_DX, 1, ab, out);
}

/* Rows of node k: values c, slopes c', and their part -lam . c'' of H (O12). */
static void expand_rows(const struct horizon *o, const struct worker *worker, long k)
{
    const double *x = o->x + N_X * k, *u = k < o->steps ? o->u + N_U * k : o->no_input;
    const double *w = o->w + N_NODE * k;
    ROOM_OF(lam, worker);
    double *bend = lam + N_ROWS;
    ocp_inequalities(o, worker, k, x, u, o->c + N_I * k);
    if (!N_ROWS) return;
    call(&worker->row_slopes, x, u, w, 0, o->slopes + (long)N_ROWS * N_Y * k, 0);
    if (!o->curved) return;
    for (int i = 0; i < N_ROWS; ++i)
        lam[i] = holds_at(o, k, 2 * N_U + i) ? o->lam[N_I * k + 2 * N_U + i] : 0.0;
    call(&worker->row_curvature, x, u, w, lam, bend, 0);
    if (k < o->steps) {
        for (int i = 0; i < N_Y * N_Y; ++i) o->bend[(long)N_Y * N_Y * k + i] -= bend[i];
        return;
    }
    for (int i = 0; i < N_DX; ++i)
        for (int j = 0; j < N_DX; ++j) o->h_end[N_DX * i + j] -= bend[N_Y * i + j];
}

/* Newton's equation at step k. */
static int expand_step(const struct horizon *o, const struct worker *worker, const struct steps *s,
                       long k)
{
    const long square = (long)N_Y * N_Y * k;
    const double *x = s->x + N_X * k, *u = s->u + N_U * k, *w = o->w + N_NODE * k;
    if (o->curved) memset(o->bend + square, 0, sizeof(double) * N_Y * N_Y);
    if (differentiate(o, worker, k)) return 1;
    close_gap(o, worker, k);
    call(&worker->stage_derivatives, x, u, w, 0, o->g + N_Y * k, o->h + square);
    expand_rows(o, worker, k);
    return 0;
}

/* Newton's equation (O3), (O4), (O12) at all nodes: gaps, [A B], derivatives of cost and rows;
 * 1 where a step fails, at node `failed_at`. */
int ocp_expand(struct horizon *o)
{
    const double *last = o->x + N_X * o->steps, *w = o->w + N_NODE * o->steps;
    const struct steps steps = {o->x, o->u, o->z, o->y};
    const struct worker *worker = o->workers;
    if (ocp_at_all_steps(o, expand_step, &steps)) return 1;
    call(&worker->terminal_derivatives, last, w, 0, 0, o->g_end, o->h_end);
    expand_rows(o, worker, o->steps);
    if (N_END) {
        ROOM_OF(bend, worker);
        call(&worker->end, last, o->goal, 0, 0, o->e, 0);
        call(&worker->end_derivatives, last, o->goal, o->nu, 0, o->e_slope, bend);
        for (int i = 0; i < N_DX * N_DX && o->curved; ++i) o->h_end[i] += bend[i];
    }
    return 0;
}
