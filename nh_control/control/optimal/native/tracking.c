/* A step of a tracker from its plan of the step before, for closed loops: `MpcTracker.prepare` and
 * `feedback` in one, to the bit. */
#include "horizon.h"
#include "real_time.h"

/* The parameters of the nodes along a reference (n_rows, N_NODE), of which those from the columns
 * `disturbed` on are the estimated force: the disturbance of n_momenta momenta, behind n_positions
 * others, over the step h. The plan before. */
struct tracking {
    struct horizon *horizon;
    const double *table;
    const long long *disturbed;
    long long n_rows, n_disturbed, n_positions, n_momenta, iterations;
    double h;
    double *x, *u, *z, *pi, *s, *t, *lam, *weight, *K;
};

/* An array of the plan before and that of the solver, of a size. */
struct part {
    double *before, *now;
    long size;
};
#define N_PARTS 9

/* All arrays of a plan, the weights, some of which are infinite, and the gains last. */
static void parts_of(const struct tracking *m, struct part *parts)
{
    const struct horizon *o = m->horizon;
    const long n = o->steps;
    const struct part all[N_PARTS] = {
        {m->x, o->x, N_X * (n + 1)},     {m->u, o->u, N_U * n},       {m->z, o->z, o->nz * n},
        {m->pi, o->pi, N_DX * n},        {m->s, o->s, N_I * (n + 1)}, {m->t, o->t, N_I * (n + 1)},
        {m->lam, o->lam, N_I * (n + 1)}, {m->weight, o->weight, N_I}, {m->K, o->K, N_U * N_DX * n},
    };
    memcpy(parts, all, sizeof all);
}

/* The plan before becomes the solver's, without its gains, which are computed again. */
static void load_plan(const struct tracking *m)
{
    struct part parts[N_PARTS];
    parts_of(m, parts);
    for (int i = 0; i < N_PARTS - 1; ++i)
        memcpy(parts[i].now, parts[i].before, sizeof(double) * parts[i].size);
}

/* Whether all numbers of the solver's plan but its weights and gains are finite. */
static int is_finite(const struct tracking *m)
{
    struct part parts[N_PARTS];
    parts_of(m, parts);
    for (int i = 0; i < N_PARTS - 2; ++i)
        for (long j = 0; j < parts[i].size; ++j)
            if (!isfinite(parts[i].now[j])) return 0;
    return 1;
}

/* The solver's plan, which a step went on from, is now the one before. */
void nh_ocp_keep(struct tracking *m)
{
    struct part parts[N_PARTS];
    parts_of(m, parts);
    for (int i = 0; i < N_PARTS; ++i)
        memcpy(parts[i].before, parts[i].now, sizeof(double) * parts[i].size);
}

/* The drift of the steps, and the force that is passed to constraints, for a disturbance d. */
static void disturb(const struct tracking *m, const double *d, double *drift)
{
    const struct horizon *o = m->horizon;
    memcpy(drift + m->n_positions, d, sizeof(double) * m->n_momenta);
    for (long k = 0; k <= o->steps; ++k)
        for (long long j = 0; j < m->n_disturbed; ++j)
            for (long long i = 0; i < m->n_momenta; ++i)
                o->w[N_NODE * k + m->disturbed[j] + i] = d[i] / m->h;
}

/* The problem of step k at the state that is predicted for it, from the plan before and its
 * disturbance d; 1 where there is none. */
static int prepare(const struct tracking *m, long long k, const double *predicted, const double *d)
{
    struct horizon *o = m->horizon;
    double *const *a = o->workers->arrays;
    for (long i = 0; i <= o->steps; ++i) {
        const long long row = k + i < m->n_rows ? k + i : m->n_rows - 1;
        memcpy(o->w + N_NODE * i, m->table + N_NODE * row, sizeof(double) * N_NODE);
    }
    disturb(m, d, o->drift);
    load_plan(m);
    /* the size of the step's terms, on which its accuracy depends, is that of this state */
    memcpy(a[X], predicted, sizeof(double) * N_STEP_X);
    memcpy(a[U], o->u + N_U, sizeof(double) * N_U);
    *a[WARM] = 0.0;
    if (o->step(a) || nh_ocp_shift(o, 1)) return 1;
    memcpy(o->x, predicted, sizeof(double) * N_X);
    return nh_ocp_prepare(o) != GOES_ON;
}

/* Inputs u of step k within their limits, and whether they are as close to one as the barrier
 * allows, by a plan from the state x, by the state that was `predicted` for it, and by the
 * estimates of the disturbance `before` x was known and now, d; 1 where there is none. */
int nh_ocp_command(struct tracking *m, long long k, const double *x, const double *predicted,
                   const double *before, const double *d, double *u, unsigned char *saturated)
{
    struct horizon *o = m->horizon;
    if (prepare(m, k, predicted, before)) return 1;
    memcpy(o->state, x, sizeof(double) * N_X);
    disturb(m, d, o->drift_next);
    if (nh_ocp_feedback(o, (int)m->iterations) != GOES_ON || !is_finite(m)) return 1;
    for (int i = 0; i < N_U; ++i) {
        const double lower = o->lower[i], upper = o->upper[i], width = upper - lower;
        const double near = 1e-3 * (isfinite(width) ? width : 1.0);
        u[i] = o->u[i] < lower ? lower : o->u[i] > upper ? upper : o->u[i];
        saturated[i] = u[i] <= lower + near || u[i] >= upper - near;
    }
    return 0;
}
