/* Closed loops of any discrete systems, whose sizes are data here; generated functions and
 * nh_substeps come as pointers. Sums run in the order of the indices, as `numpy.cumsum` does:
 * Python computes the same bits with it.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>
#include <string.h>

#include "motion.h"

/* A step x1 = f(x, u) by n fractions of it, on the arrays of a workspace, x, u and x1 among them;
 * `n_prescribed` coordinates are prescribed. */
struct stepper {
    int (*substeps)(double *const *arrays, const double *fractions, int n);
    double *const *arrays;
    const double *fractions;
    long long n;
    double *x, *u, *x1;
    long long nx, nu, nq, n_prescribed;
};

/* Steps from the rows of x (rows, nx) under those of u (rows, nu) to those of x1, 0 in `statuses`
 * where they succeed. */
void nh_steps(const struct stepper *s, long long rows, const double *x, const double *u,
              double *x1, int *statuses)
{
    for (long long i = 0; i < rows; ++i) {
        memcpy(s->x, x + s->nx * i, sizeof(double) * (size_t)s->nx);
        memcpy(s->u, u + s->nu * i, sizeof(double) * (size_t)s->nu);
        statuses[i] = s->substeps(s->arrays, s->fractions, (int)s->n);
        memcpy(x1 + s->nx * i, s->x1, sizeof(double) * (size_t)s->nx);
    }
}

/* u = feedforward - K local(target, x) - K_d d within limits, for the steps of a reference and,
 * with `hold`, past its end; without K_d (NULL) there is no estimate d, without impulses (NULL)
 * states are compared as they are.
 *
 * With a `command` (not NULL) that finds u within limits, and whether it is near them, from the
 * state x at step k, the state `predicted` for it and the estimates d before and now; `keep` is
 * called after each step that succeeds with it. */
struct law {
    int (*local)(const double *x0, const double *x1, const double *p, double *dx);
    int (*retract)(const double *x, const double *dx, const double *p, double *x1);
    const double *targets, *feedforward, *K, *K_d, *impulses, *limits;
    long long length, hold, ndx, nv, n_disturbance;
    double gain;
    int (*command)(void *controller, long long k, const double *x, const double *predicted,
                   const double *before, const double *d, double *u, unsigned char *saturated);
    void (*keep)(void *controller);
    void *controller;
};

/* A plant at x (its state now), `substeps` of whose steps make one of the model, with external
 * forces in every step. Without `state` (NULL) the model has the plant's states. `stage` of the
 * memory: 0 empty, 1 an estimated disturbance, 2 a predicted state, too. Of the record,
 * plant_states and before may be NULL. */
struct loop {
    const struct stepper *plant, *model;
    const struct motion *plant_motion, *model_motion;
    const struct law *law;
    int (*state)(const double *q, const double *v, const double *u, const double *h,
                 const double *p, double *x);
    const double *h, *no_forces, *external;
    long long substeps, n_external, every;
    double *x, *disturbance, *predicted;
    long long *stage;
    double *states, *inputs, *errors, *plant_states, *before;
    unsigned char *saturated;
};

/* Whether no number of a (n) is infinite or NaN. */
static int all_finite(long long n, const double *a)
{
    for (long long i = 0; i < n; ++i)
        if (!isfinite(a[i])) return 0;
    return 1;
}

/* The model's state of the same configuration and velocity as the plant's now. */
static int as_model(const struct loop *l, double *x)
{
    if (!l->state) {
        copy(x, l->x, l->model->nx);
        return DONE;
    }
    double v[l->plant_motion->nw + 1];
    if (nh_velocity(l->plant_motion, l->x, v)) return FAILED;
    l->state(l->x, v, l->no_forces, l->h, l->model_motion->p, x);
    return !all_finite(l->model->nx, x);
}

/* The state with the constraint impulses of the reference at node k in its momentum. */
static int comparable(const struct loop *l, long long k, const double *x, double *out)
{
    if (l->law->impulses)
        return nh_with_impulses(l->model_motion, x,
                                l->law->impulses + l->model_motion->n_impulses * k, out);
    copy(out, x, l->model->nx);
    return DONE;
}

/* dx = local(x0, x1) of the model. */
static int local(const struct loop *l, const double *x0, const double *x1, double *dx)
{
    l->law->local(x0, x1, l->model_motion->p, dx);
    return !all_finite(l->law->ndx, dx);
}

/* The disturbance d (S14) by the innovation of the state x at step k of the reference. */
static int estimate(const struct loop *l, long long k, const double *x, double *d)
{
    const struct law *c = l->law;
    double innovation[c->ndx], expected[l->model->nx];
    for (long long i = 0; i < c->n_disturbance; ++i) d[i] = *l->stage ? l->disturbance[i] : 0.0;
    if (*l->stage < 2) return DONE;
    if (comparable(l, k, l->predicted, expected) || local(l, expected, x, innovation))
        return FAILED;
    for (long long i = 0; i < c->n_disturbance; ++i) d[i] += c->gain * innovation[c->nv + i];
    return DONE;
}

/* The state `predicted` (S14) after x under u and the disturbance d. */
static int predict(const struct loop *l, const double *x, const double *u, const double *d,
                   double *predicted)
{
    const struct stepper *m = l->model;
    const struct law *c = l->law;
    double dx[c->ndx];
    copy(m->x, x, m->nx);
    copy(m->u, u, m->nu);
    if (m->substeps(m->arrays, m->fractions, (int)m->n)) return FAILED;
    memset(dx, 0, sizeof dx);
    copy(dx + c->nv, d, c->n_disturbance);
    c->retract(m->x1, dx, l->model_motion->p, predicted);
    return !all_finite(m->nx, predicted);
}

/* Inputs (S13) without limits at step k, where the error is given. */
static void wanted(const struct loop *l, long long k, const double *x, const double *error,
                   const double *d, double *u)
{
    const struct law *c = l->law;
    const long long nu = l->model->nu, forces = nu - l->model->n_prescribed;
    if (k >= c->length && !c->hold) {
        for (long long i = 0; i < nu; ++i) u[i] = i < forces ? 0.0 : x[l->model->nq - nu + i];
        return;
    }
    if (k >= c->length) k = c->length - 1;
    for (long long i = 0; i < nu; ++i) {
        u[i] = c->feedforward[nu * k + i] - dot(c->ndx, c->K + c->ndx * (nu * k + i), error);
        if (c->K_d) u[i] -= dot(c->n_disturbance, c->K_d + c->n_disturbance * (nu * k + i), d);
    }
}

/* Inputs within the limits at step k and whether they are saturated, where the error and the
 * estimate d are given. */
static int command(const struct loop *l, long long k, const double *x, const double *error,
                   const double *d, double *clipped, unsigned char *saturated)
{
    const struct law *c = l->law;
    const long long nu = l->model->nu;
    double u[nu + 1];
    if (c->command)
        return c->command(c->controller, k, x, l->predicted, l->disturbance, d, clipped,
                          saturated);
    wanted(l, k, x, error, d, u);
    for (long long i = 0; i < nu; ++i) {
        const double least = c->limits[2 * i], most = c->limits[2 * i + 1];
        clipped[i] = u[i] < least ? least : u[i] > most ? most : u[i];
        saturated[i] = clipped[i] != u[i];
    }
    return DONE;
}

/* The plant by one step of the model under its inputs u and the external forces w; prescribed
 * coordinates move evenly. */
static int advance(const struct loop *l, long long k, const double *u, const double *w)
{
    const struct stepper *p = l->plant;
    const long long n_prescribed = p->n_prescribed, forces = p->nu - n_prescribed;
    const long long own = forces - l->n_external;
    double start[n_prescribed + 1];
    copy(start, l->x + p->nq - n_prescribed, n_prescribed);
    copy(p->x, l->x, p->nx);
    for (long long i = 1; i <= l->substeps; ++i) {
        const double part = (double)i / (double)l->substeps;
        copy(p->u, u, own);
        copy(p->u + own, w, l->n_external);
        for (long long j = 0; j < n_prescribed; ++j)
            p->u[forces + j] =
                i == l->substeps ? u[own + j] : start[j] + part * (u[own + j] - start[j]);
        if (i == l->substeps && l->before) copy(l->before + p->nx * k, p->x, p->nx);
        if (p->substeps(p->arrays, p->fractions, (int)p->n)) return FAILED;
        if (i < l->substeps) copy(p->x, p->x1, p->nx);
    }
    return DONE;
}

/* Step *k of the model with its record; a step that fails leaves plant and memory as they were. */
static int closed_step(const struct loop *l, long long k)
{
    const struct law *c = l->law;
    const long long nx = l->model->nx, nu = l->model->nu, row = k / l->every,
                    node = k < c->length ? k : c->length;
    const int kept = k % l->every == 0;
    const int remembers = (c->K_d || c->command) && (k < c->length || c->hold);
    double seen[nx], x[nx], error[c->ndx], u[nu + 1], d[c->n_disturbance + 1], predicted[nx];
    unsigned char saturated[nu + 1];
    if (as_model(l, seen) || comparable(l, node, seen, x) ||
        local(l, c->targets + nx * node, x, error))
        return FAILED;
    if (remembers && estimate(l, k < c->length ? k : c->length - 1, x, d)) return FAILED;
    if (command(l, k, x, error, d, u, saturated)) return FAILED;
    if (remembers && predict(l, x, u, d, predicted)) return FAILED;
    if (advance(l, k, u, l->external + l->n_external * k)) return FAILED;
    if (c->command) c->keep(c->controller);
    copy(l->x, l->plant->x1, l->plant->nx);
    *l->stage = remembers ? 2 : 0;
    if (remembers) {
        copy(l->disturbance, d, c->n_disturbance);
        copy(l->predicted, predicted, nx);
    }
    if (l->plant_states) copy(l->plant_states + l->plant->nx * (k + 1), l->x, l->plant->nx);
    for (long long i = 0; i < nu; ++i) l->saturated[nu * row + i] |= saturated[i];
    if (kept) {
        copy(l->states + nx * row, seen, nx);
        copy(l->errors + c->ndx * row, error, c->ndx);
        copy(l->inputs + nu * row, u, nu);
    }
    return DONE;
}

/* Steps number *k ... end - 1; stops before the first one that fails, which is then *k. */
int nh_closed_loop(const struct loop *l, long long *k, long long end)
{
    for (; *k < end; ++*k)
        if (closed_step(l, *k)) return FAILED;
    return DONE;
}
