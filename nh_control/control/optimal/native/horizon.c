/* Values and derivatives of the problem (O1), (O2) along a trajectory.
 *
 * Equations (O...): doc/theory/interior_point.md. */
#include "horizon.h"

static const double no_input[N_U + 1];

/* c_k of (O2): the limits of inputs, then the other rows. */
INTERNAL void inequalities(const struct horizon *o, long k, const double *x, const double *u,
                           double *c)
{
    for (int i = 0; i < N_U && k < o->steps; ++i) {
        c[i] = u[i] - o->lower[i];
        c[N_U + i] = o->upper[i] - u[i];
    }
    if (N_ROWS) o->rows(x, k < o->steps ? u : no_input, o->w + N_NODE * k, c + 2 * N_U);
}

/* x, u, and the unknowns of the present trajectory as a guess, into the arrays; the parameters
 * among the constants to their places. */
static void load(const struct horizon *o, long k, const double *x, const double *u)
{
    double *const *a = o->arrays;
    memcpy(a[X], x, sizeof(double) * N_STEP_X);
    for (int i = 0; i < N_FREE; ++i) a[P][(int)o->places[i]] = x[N_STEP_X + i];
    memcpy(a[U], u, sizeof(double) * N_U);
    memcpy(a[Z], o->z + o->nz * k, sizeof(double) * o->nz);
    *a[WARM] = 1.0;
}

/* The end y of the step from x that is in the arrays: constants stay. */
INTERNAL void read_end(const struct horizon *o, const double *x, double *y)
{
    memcpy(y, o->arrays[X1], sizeof(double) * N_STEP_X);
    memcpy(y + N_STEP_X, x + N_STEP_X, sizeof(double) * (N_X - N_STEP_X));
}

/* Step k from the unknowns of the present trajectory, which are near. */
INTERNAL int solve_step(const struct horizon *o, long k, const double *x, const double *u)
{
    load(o, k, x, u);
    const int failed = o->step(o->arrays);
    *o->arrays[WARM] = 0.0;
    return failed;
}

/* Unknowns and end of step k. */
INTERNAL int take_step(struct horizon *o, const struct steps *s, long k)
{
    const double *x = s->x + N_X * k;
    if (solve_step(o, k, x, s->u + N_U * k)) return 1;
    memcpy(s->z + o->nz * k, o->arrays[Z], sizeof(double) * o->nz);
    read_end(o, x, s->y + N_X * k);
    return 0;
}

/* Cost (O1), violation (O7) and merit (O6) of a trial with slacks s, t; 1 where a step fails.
 * z, y: unknowns and ends of its steps. Gaps and values are in gap_trial, c_trial, e_trial. */
INTERNAL int evaluate(const struct horizon *o, const double *x, const double *u, const double *s,
                      const double *t, double *z, double *y, double *violation, double *merit,
                      double *cost)
{
    double v;
    long failed_at;
    const struct steps steps = {x, u, z, y};
    *violation = *merit = *cost = 0.0;
    if (at_all_steps(o, take_step, &steps, &failed_at)) return 1;
    for (long k = 0; k <= o->steps; ++k) {
        const double *xk = x + N_X * k, *uk = u + N_U * k, *w = o->w + N_NODE * k;
        double *gap = o->gap_trial + N_DX * k, *c = o->c_trial + N_I * k;
        if (k < o->steps) {
            o->local(xk + N_X, y + N_X * k, o->arrays[P], gap);
            for (int i = 0; i < N_DX; ++i) *violation += fabs(gap[i] += o->drift[i]);
            o->stage(xk, uk, w, &v);
        } else {
            o->terminal(xk, w, &v);
        }
        *cost += v;
        inequalities(o, k, xk, uk, c);
        for (int i = 0; i < N_I; ++i) {
            if (!holds_at(o, k, i)) continue;
            const long r = N_I * k + i;
            *merit -= o->mu * log(s[r]);
            if (is_soft(o, i)) *merit += o->weight[i] * t[r] - o->mu * log(t[r]);
            *violation += fabs(c[i] + (is_soft(o, i) ? t[r] : 0.0) - s[r]);
        }
    }
    if (N_END) o->end(x + N_X * o->steps, o->e_trial);
    for (int i = 0; i < N_END; ++i) *violation += fabs(o->e_trial[i]);
    *merit += *cost;
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
    return j - N_STEP_DX < N_FREE ? N_STEP_DX + N_U + (int)o->places[j - N_STEP_DX] : -1;
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
static int differentiate(struct horizon *o, long k)
{
    double *const *a = o->arrays, *out = o->ab + (long)N_DX * N_Y * k;
    const int curved = o->curved && o->hessian;
    load(o, k, o->x + N_X * k, o->u + N_U * k);
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
    scatter(o, a[AB], out);
    if (curved) scatter_square(o, a[HESSIAN], o->bend + (long)N_Y * N_Y * k);
    return 0;
}

/* The gap behind step k (O3), and [A B] in the coordinates about the next state (O4). */
static void close_gap(struct horizon *o, long k)
{
    double ab[N_DX * N_Y], slope[N_DX * N_DX], far = 0.0, *out = o->ab + (long)N_DX * N_Y * k;
    double *const *a = o->arrays, *gap = o->gap + N_DX * k, *next = o->x + N_X * (k + 1), y[N_X];
    read_end(o, o->x + N_X * k, y);
    o->local(next, y, a[P], gap);
    for (int i = 0; i < N_DX; ++i) far = fmax(far, fabs(gap[i]));
    for (int i = 0; i < N_DX; ++i) gap[i] += o->drift[i];
    if (far < 1e-12) return;
    o->transport(next, y, slope);
    memcpy(ab, out, sizeof ab);
    memset(out, 0, sizeof ab);
    multiply(N_DX, N_DX, N_Y, 0, slope, N_DX, 1, ab, out);
}

/* Rows of node k: values c, slopes c', and their part -lam . c'' of H (O12). */
static void expand_rows(struct horizon *o, long k)
{
    const double *x = o->x + N_X * k, *u = k < o->steps ? o->u + N_U * k : no_input;
    const double *w = o->w + N_NODE * k;
    double lam[N_ROWS + 1], bend[N_Y * N_Y];
    inequalities(o, k, x, u, o->c + N_I * k);
    if (!N_ROWS) return;
    o->row_slopes(x, u, w, o->slopes + (long)N_ROWS * N_Y * k);
    if (!o->curved) return;
    for (int i = 0; i < N_ROWS; ++i)
        lam[i] = holds_at(o, k, 2 * N_U + i) ? o->lam[N_I * k + 2 * N_U + i] : 0.0;
    o->row_curvature(x, u, w, lam, bend);
    if (k < o->steps) {
        for (int i = 0; i < N_Y * N_Y; ++i) o->bend[(long)N_Y * N_Y * k + i] -= bend[i];
        return;
    }
    for (int i = 0; i < N_DX; ++i)
        for (int j = 0; j < N_DX; ++j) o->h_end[N_DX * i + j] -= bend[N_Y * i + j];
}

/* Newton's equation at step k. */
static int expand_step(struct horizon *o, const struct steps *s, long k)
{
    const long square = (long)N_Y * N_Y * k;
    const double *x = s->x + N_X * k, *u = s->u + N_U * k;
    if (o->curved) memset(o->bend + square, 0, sizeof(double) * N_Y * N_Y);
    if (differentiate(o, k)) return 1;
    close_gap(o, k);
    o->stage_derivatives(x, u, o->w + N_NODE * k, o->g + N_Y * k, o->h + square);
    expand_rows(o, k);
    return 0;
}

/* Newton's equation (O3), (O4), (O12) at all nodes: gaps, [A B], derivatives of cost and rows;
 * 1 where a step fails, at node `failed_at`. */
INTERNAL int expand(struct horizon *o)
{
    const double *last = o->x + N_X * o->steps;
    const struct steps steps = {o->x, o->u, o->z, o->y};
    if (at_all_steps(o, expand_step, &steps, &o->failed_at)) return 1;
    o->terminal_derivatives(last, o->w + N_NODE * o->steps, o->g_end, o->h_end);
    expand_rows(o, o->steps);
    if (N_END) {
        double bend[N_DX * N_DX];
        o->end(last, o->e);
        o->end_derivatives(last, o->nu, o->e_slope, bend);
        for (int i = 0; i < N_DX * N_DX && o->curved; ++i) o->h_end[i] += bend[i];
    }
    return 0;
}
