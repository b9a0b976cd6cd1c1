/* Closed loops of any discrete systems, whose sizes are data here; generated functions and
 * nh_substeps come as pointers. Sums run in the order of the indices, as those of `numpy.cumsum`:
 * what Python computes with that is the same to the bit.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>
#include <string.h>

enum { DONE, FAILED };

/* out (rows, n): f(a, b, p) of the rows of a (rows, na) and b (rows, nb). */
void nh_pairs(int (*f)(const double *a, const double *b, const double *p, double *out),
              const double *p, long long rows, long long na, const double *a, long long nb,
              const double *b, long long n, double *out)
{
    for (long long i = 0; i < rows; ++i) f(a + na * i, b + nb * i, p, out + n * i);
}

/* Physical parameters p and the function inertia(x, p) -> M (n, n), b (n), X (nw, n), c (nw) with
 * n = nrho + n_impulses; room for these and a copy of M. */
struct motion {
    int (*inertia)(const double *x, const double *p, double *mass, double *momentum, double *basis,
                   double *prescribed);
    const double *p;
    long long nx, nq, nw, nrho, n_impulses;
    double *room;
};

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
 * states are compared as they are. */
struct law {
    int (*local)(const double *x0, const double *x1, const double *p, double *dx);
    int (*retract)(const double *x, const double *dx, const double *p, double *x1);
    const double *targets, *feedforward, *K, *K_d, *impulses, *limits;
    long long length, hold, ndx, nv, n_disturbance;
    double gain;
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

/* a . b, in the order of the indices. */
static double dot(long long n, const double *a, const double *b)
{
    double sum = n ? a[0] * b[0] : 0.0;
    for (long long i = 1; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* Whether no number of a (n) is infinite or NaN. */
static int all_finite(long long n, const double *a)
{
    for (long long i = 0; i < n; ++i)
        if (!isfinite(a[i])) return 0;
    return 1;
}

/* to (n) = from (n). */
static void copy(double *to, const double *from, long long n)
{
    memcpy(to, from, sizeof(double) * (size_t)n);
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define FOR_EVERY_PROCESSOR                                                                       \
    __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_PROCESSOR
#endif

/* row (n) -= f other (n); without sums, so that vectors give the same bits. */
FOR_EVERY_PROCESSOR
static void subtract(long long n, double f, const double *restrict other, double *restrict row)
{
    for (long long j = 0; j < n; ++j) row[j] -= f * other[j];
}

/* b (n) becomes the solution of a y = b by (S1), a (n, n) is lost; 1 where a is singular or not
 * finite. */
static int solve(long long n, double *a, double *b)
{
    for (long long k = 0; k < n; ++k) {
        long long p = k;
        for (long long i = k + 1; i < n; ++i)
            if (!(fabs(a[n * i + k]) <= fabs(a[n * p + k]))) p = i;
        if (!(fabs(a[n * p + k]) > 0.0 && fabs(a[n * p + k]) < INFINITY)) return FAILED;
        for (long long j = k; p != k && j < n; ++j) {
            const double t = a[n * k + j];
            a[n * k + j] = a[n * p + j];
            a[n * p + j] = t;
        }
        const double t = b[k];
        b[k] = b[p];
        b[p] = t;
        for (long long i = k + 1; i < n; ++i) {
            const double f = a[n * i + k] / a[n * k + k];
            if (f == 0.0) continue;
            subtract(n - 1 - k, f, a + n * k + k + 1, a + n * i + k + 1);
            b[i] -= f * b[k];
        }
    }
    for (long long i = n - 1; i >= 0; --i)
        b[i] = (b[i] - dot(n - 1 - i, a + n * i + i + 1, b + i + 1)) / a[n * i + i];
    return DONE;
}

/* v (nw), the velocity X y + c with M y = b at the state x (S11). */
int nh_velocity(const struct motion *m, const double *x, double *v)
{
    const long long n = m->nrho + m->n_impulses;
    double *mass = m->room, *y = mass + 2 * n * n, *basis = y + n, *prescribed = basis + m->nw * n;
    m->inertia(x, m->p, mass, y, basis, prescribed);
    if (solve(n, mass, y)) return FAILED;
    for (long long i = 0; i < m->nw; ++i) v[i] = dot(n, basis + n * i, y) + prescribed[i];
    return DONE;
}

/* The state of the velocity of x with the constraint impulses mu (n_impulses) in its momentum
 * (S12). */
int nh_with_impulses(const struct motion *m, const double *x, const double *mu, double *x1)
{
    const long long r = m->nrho, n = r + m->n_impulses;
    double *mass = m->room, *whole = mass + n * n, *y = whole + n * n, *basis = y + n,
           *prescribed = basis + m->nw * n;
    m->inertia(x, m->p, mass, y, basis, prescribed);
    copy(whole, mass, n * n);
    if (solve(n, mass, y)) return FAILED;
    for (long long i = r; i < n; ++i) y[i] = mu[i - r] - y[i];
    for (long long i = 0; i < r; ++i) y[i] = dot(n - r, whole + n * i + r, y + r);
    copy(x1, x, m->nx);
    for (long long i = 0; i < m->nw; ++i) x1[m->nq + i] += dot(r, basis + n * i, y);
    return DONE;
}

/* energy (rows) of the states x (rows, nx) by the function energy(q, v, p). */
int nh_energies(const struct motion *m,
                int (*energy)(const double *, const double *, const double *, double *),
                long long rows, const double *x, double *out)
{
    double v[m->nw + 1];
    for (long long i = 0; i < rows; ++i, x += m->nx) {
        if (nh_velocity(m, x, v)) return FAILED;
        energy(x, v, m->p, out + i);
    }
    return DONE;
}

/* out (rows, n): constraint(x0, x1, h, p) of the steps from before to after, both (rows, nx). */
int nh_constraints(const struct motion *m,
                   int (*constraint)(const double *, const double *, const double *,
                                     const double *, double *),
                   const double *h, long long rows, long long n, const double *before,
                   const double *after, double *out)
{
    for (long long i = 0; i < rows; ++i)
        constraint(before + m->nx * i, after + m->nx * i, h, m->p, out + n * i);
    return DONE;
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
static int wanted(const struct loop *l, long long k, const double *x, const double *error,
                  double *d, double *u)
{
    const struct law *c = l->law;
    const long long nu = l->model->nu, forces = nu - l->model->n_prescribed;
    if (k >= c->length && !c->hold) {
        for (long long i = 0; i < nu; ++i) u[i] = i < forces ? 0.0 : x[l->model->nq - nu + i];
        return DONE;
    }
    if (k >= c->length) k = c->length - 1;
    if (c->K_d && estimate(l, k, x, d)) return FAILED;
    for (long long i = 0; i < nu; ++i) {
        u[i] = c->feedforward[nu * k + i] - dot(c->ndx, c->K + c->ndx * (nu * k + i), error);
        if (c->K_d) u[i] -= dot(c->n_disturbance, c->K_d + c->n_disturbance * (nu * k + i), d);
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

/* Step *k of the model, and what is kept of it; a step that fails leaves plant and memory as they
 * were. */
static int closed_step(const struct loop *l, long long k)
{
    const struct law *c = l->law;
    const long long nx = l->model->nx, nu = l->model->nu, row = k / l->every,
                    node = k < c->length ? k : c->length;
    const int kept = k % l->every == 0, remembers = c->K_d && (k < c->length || c->hold);
    double seen[nx], x[nx], error[c->ndx], u[nu + 1], clipped[nu + 1], d[c->n_disturbance + 1],
        predicted[nx];
    if (as_model(l, seen) || comparable(l, node, seen, x) ||
        local(l, c->targets + nx * node, x, error))
        return FAILED;
    if (wanted(l, k, x, error, d, u)) return FAILED;
    for (long long i = 0; i < nu; ++i) {
        const double least = c->limits[2 * i], most = c->limits[2 * i + 1];
        clipped[i] = u[i] < least ? least : u[i] > most ? most : u[i];
    }
    if (remembers && predict(l, x, clipped, d, predicted)) return FAILED;
    if (advance(l, k, clipped, l->external + l->n_external * k)) return FAILED;
    copy(l->x, l->plant->x1, l->plant->nx);
    *l->stage = remembers ? 2 : 0;
    if (remembers) {
        copy(l->disturbance, d, c->n_disturbance);
        copy(l->predicted, predicted, nx);
    }
    if (l->plant_states) copy(l->plant_states + l->plant->nx * (k + 1), l->x, l->plant->nx);
    for (long long i = 0; i < nu; ++i) l->saturated[nu * row + i] |= clipped[i] != u[i];
    if (kept) {
        copy(l->states + nx * row, seen, nx);
        copy(l->errors + c->ndx * row, error, c->ndx);
        copy(l->inputs + nu * row, clipped, nu);
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
