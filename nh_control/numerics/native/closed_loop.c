/* Closed loops of any discrete systems, whose sizes are data here. Sums run in the order of the
 * indices, as `numpy.cumsum` does: Python computes the same bits with it.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>
#include <string.h>

#include "motion.h"
#include "stepper.h"

/* u = feedforward - K local(target, x) - K_d d within limits, for the steps of a reference and,
 * with `hold`, past its end; without K_d (NULL) there is no estimate d, without impulses (NULL)
 * states are compared as they are.
 *
 * With a `command` (not NULL) that finds u within limits, and whether it is near them, from the
 * state x at step k, the state `predicted` for it and the estimates d before and now; `keep` is
 * called after each step that succeeds with it. */
struct law {
    struct function local, retract;
    const double *targets, *feedforward, *K, *K_d, *impulses, *limits;
    long long length, hold, ndx, nv, n_disturbance;
    double gain;
    int (*command)(void *controller, long long k, const double *x, const double *predicted,
                   const double *before, const double *d, double *u, unsigned char *saturated);
    void (*keep)(void *controller);
    void *controller;
};

/* A plant at x (its state now), `substeps` of whose steps make one of the model, with external
 * forces in every step. Without `state` the model has the plant's states. `stage` of the
 * memory: 0 empty, 1 an estimated disturbance, 2 also a predicted state. Of the record,
 * plant_states and before may be NULL. */
struct loop {
    const struct stepper *plant, *model;
    const struct motion *plant_motion, *model_motion;
    const struct law *law;
    struct function state;
    const double *h, *no_forces, *external;
    long long substeps, n_external, every;
    double *x, *disturbance, *predicted;
    long long *stage;
    double *states, *inputs, *errors, *plant_states, *before;
    unsigned char *saturated;
    double *room;
};

/* The arrays of a step: states of the model as it is and with the reference's impulses, `error`
 * and `dx` (ndx), the estimate d, and the plant's velocity v and prescribed coordinates. */
struct step_arrays {
    double *seen, *x, *predicted, *expected, *error, *dx, *u, *d, *v, *start;
    unsigned char *saturated;
};

/* The next n numbers of a room. */
static double *take(double **room, long long n)
{
    double *const piece = *room;
    *room += n;
    return piece;
}

/* The arrays of a step in the room of a loop. */
static struct step_arrays arrays_of(const struct loop *l)
{
    const long long nx = l->model->nx, ndx = l->law->ndx;
    double *room = l->room;
    struct step_arrays s;
    s.seen = take(&room, nx);
    s.x = take(&room, nx);
    s.predicted = take(&room, nx);
    s.expected = take(&room, nx);
    s.error = take(&room, ndx);
    s.dx = take(&room, ndx);
    s.u = take(&room, l->model->nu);
    s.d = take(&room, l->law->n_disturbance);
    s.v = take(&room, l->plant_motion->nw);
    s.start = take(&room, l->plant->n_prescribed);
    s.saturated = (unsigned char *)room;
    return s;
}

/* Numbers of room that a loop needs. */
long long nh_loop_room(const struct loop *l)
{
    return 4 * l->model->nx + 2 * l->law->ndx + 2 * l->model->nu + l->law->n_disturbance +
           l->plant_motion->nw + l->plant->n_prescribed;
}

/* Whether all numbers of a (n) are finite. */
static int all_finite(long long n, const double *a)
{
    for (long long i = 0; i < n; ++i)
        if (!isfinite(a[i])) return 0;
    return 1;
}

/* The model's state with the plant's present configuration and velocity. */
static int as_model(const struct loop *l, double *v, double *x)
{
    if (!l->state.call) {
        copy(x, l->x, l->model->nx);
        return DONE;
    }
    if (nh_velocity(l->plant_motion, l->x, v)) return FAILED;
    const double *const in[] = {l->x, v, l->no_forces, l->h, l->model_motion->p};
    double *const out[] = {x};
    l->state.call(l->state.self, in, out);
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
    call_with(&l->law->local, x0, x1, l->model_motion->p, dx);
    return !all_finite(l->law->ndx, dx);
}

/* The disturbance d (S14) by the innovation of the state x at step k of the reference. */
static int estimate(const struct loop *l, const struct step_arrays *s, long long k)
{
    const struct law *c = l->law;
    double *d = s->d;
    for (long long i = 0; i < c->n_disturbance; ++i) d[i] = *l->stage ? l->disturbance[i] : 0.0;
    if (*l->stage < 2) return DONE;
    if (comparable(l, k, l->predicted, s->expected) || local(l, s->expected, s->x, s->dx))
        return FAILED;
    for (long long i = 0; i < c->n_disturbance; ++i) d[i] += c->gain * s->dx[c->nv + i];
    return DONE;
}

/* The state `predicted` (S14) after x under u and the disturbance d. */
static int predict(const struct loop *l, const struct step_arrays *s)
{
    const struct stepper *m = l->model;
    const struct law *c = l->law;
    copy(m->x, s->x, m->nx);
    copy(m->u, s->u, m->nu);
    if (nh_substeps(m)) return FAILED;
    memset(s->dx, 0, sizeof(double) * (size_t)c->ndx);
    copy(s->dx + c->nv, s->d, c->n_disturbance);
    call_with(&c->retract, m->x1, s->dx, l->model_motion->p, s->predicted);
    return !all_finite(m->nx, s->predicted);
}

/* Inputs (S13) without limits at step k, where the error is known. */
static void wanted(const struct loop *l, const struct step_arrays *s, long long k)
{
    const struct law *c = l->law;
    double *u = s->u;
    const long long nu = l->model->nu, forces = nu - l->model->n_prescribed;
    if (k >= c->length && !c->hold) {
        for (long long i = 0; i < nu; ++i) u[i] = i < forces ? 0.0 : s->x[l->model->nq - nu + i];
        return;
    }
    if (k >= c->length) k = c->length - 1;
    for (long long i = 0; i < nu; ++i) {
        u[i] = c->feedforward[nu * k + i] - dot(c->ndx, c->K + c->ndx * (nu * k + i), s->error);
        if (c->K_d) u[i] -= dot(c->n_disturbance, c->K_d + c->n_disturbance * (nu * k + i), s->d);
    }
}

/* Inputs within the limits at step k and whether they are saturated, where the error and the
 * estimate d are known. */
static int command(const struct loop *l, const struct step_arrays *s, long long k)
{
    const struct law *c = l->law;
    if (c->command)
        return c->command(c->controller, k, s->x, l->predicted, l->disturbance, s->d, s->u,
                          s->saturated);
    wanted(l, s, k);
    for (long long i = 0; i < l->model->nu; ++i) {
        const double least = c->limits[2 * i], most = c->limits[2 * i + 1], u = s->u[i];
        s->u[i] = u < least ? least : u > most ? most : u;
        s->saturated[i] = s->u[i] != u;
    }
    return DONE;
}

/* The plant by one step of the model under its inputs u and the external forces w; prescribed
 * coordinates move at constant rates. */
static int advance(const struct loop *l, const struct step_arrays *s, long long k, const double *w)
{
    const struct stepper *p = l->plant;
    const long long n_prescribed = p->n_prescribed, forces = p->nu - n_prescribed;
    const long long own = forces - l->n_external;
    const double *u = s->u, *start = s->start;
    copy(s->start, l->x + p->nq - n_prescribed, n_prescribed);
    copy(p->x, l->x, p->nx);
    for (long long i = 1; i <= l->substeps; ++i) {
        const double part = (double)i / (double)l->substeps;
        copy(p->u, u, own);
        copy(p->u + own, w, l->n_external);
        for (long long j = 0; j < n_prescribed; ++j)
            p->u[forces + j] =
                i == l->substeps ? u[own + j] : start[j] + part * (u[own + j] - start[j]);
        if (i == l->substeps && l->before) copy(l->before + p->nx * k, p->x, p->nx);
        if (nh_substeps(p)) return FAILED;
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
    const struct step_arrays s = arrays_of(l);
    if (as_model(l, s.v, s.seen) || comparable(l, node, s.seen, s.x) ||
        local(l, c->targets + nx * node, s.x, s.error))
        return FAILED;
    if (remembers && estimate(l, &s, k < c->length ? k : c->length - 1)) return FAILED;
    if (command(l, &s, k)) return FAILED;
    if (remembers && predict(l, &s)) return FAILED;
    if (advance(l, &s, k, l->external + l->n_external * k)) return FAILED;
    if (c->command) c->keep(c->controller);
    copy(l->x, l->plant->x1, l->plant->nx);
    *l->stage = remembers ? 2 : 0;
    if (remembers) {
        copy(l->disturbance, s.d, c->n_disturbance);
        copy(l->predicted, s.predicted, nx);
    }
    if (l->plant_states) copy(l->plant_states + l->plant->nx * (k + 1), l->x, l->plant->nx);
    for (long long i = 0; i < nu; ++i) l->saturated[nu * row + i] |= s.saturated[i];
    if (kept) {
        copy(l->states + nx * row, s.seen, nx);
        copy(l->errors + c->ndx * row, s.error, c->ndx);
        copy(l->inputs + nu * row, s.u, nu);
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
