/* The damped simplified Newton iteration of numerics/newton.py on a tree. The sizes of the rows'
 * terms are bounds from norms of the wrenches that they add up, which takes time linear in the
 * bodies, too. */

static const double INSTANT = 1e-30, LEAST_GROWTH = 0.005;

/* In the place of REFRESH: whether new factors, which cost no more than another iteration in the
 * plane, and than two in space, would save as many. */
static int worth_factors(const Tree *t, double error, double rate)
{
    return error * (t->plane && !t->m ? rate : rate * rate * rate) > TARGET;
}

INLINE double larger_of(double a, double b) { return a > b ? a : b; }

static double relative_error(int n, const double *r, const double *size)
{
    double worst = 0.0, total = 0.0;
    for (int i = 0; i < n; ++i) {
        const double error = fabs(r[i]) / larger_of(size[i], LEAST);
        worst = larger_of(error, worst);
        total += error;
    }
    return isnan(total) ? total : worst;
}

/* Whether the correction after a step s dz from z to t->trial, with the factors of that step, is
 * smaller than dz. */
static int natural(const Tree *t, const double *z, double s)
{
    const int n = t->nz + t->m;
    double after[n + 1];
    whole_solve(t, t->r, after);
    for (int i = 0; i < n; ++i) {
        t->weights[i] = fmax(fabs(z[i]), fabs(t->trial[i]));
        if (t->weights[i] == 0.0) t->weights[i] = INFINITY; /* it has not moved */
    }
    return relative_error(n, after, t->weights) <
           (1.0 - s / 4) * relative_error(n, t->dz, t->weights);
}

static double largest_ratio(int n, const double *r, const double *size, const double *larger)
{
    double worst = 0.0;
    for (int i = 0; i < n; ++i) {
        const double error = fabs(r[i]) / fmax(fmax(size[i], larger[i]), LEAST);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

static void remember(const Tree *t, double *z, const double *from)
{
    memcpy(z, from, sizeof(double) * (t->nz + t->m));
}

/* The residual at z with the sizes of its terms; its relative error. */
static double measure(const Tree *t, const double *z, double turns)
{
    whole_residual(t, z, turns);
    remember(t, t->known, t->size);
    return relative_error(t->nz + t->m, t->r, t->known);
}

/* Newton's first correction from z = 0, with the mass matrix: about the velocity of the state.
 * Returns whether it is singular, and the error before. */
static int leave_zero(const Tree *t, double turns, double *z, double *error)
{
    memset(z, 0, sizeof(double) * (t->nz + t->m));
    *error = measure(t, z, turns);
    const int singular = whole_factor(t, 1);
    if (!singular) whole_solve(t, t->r, z);
    return singular;
}

/* z: in a guess, which does not count if the iteration `leaves` zero, out the solution; `patient`:
 * with the natural test. info: iterations, relative error, largest |r|. */
static int iterate(const Tree *t, int leaves, int patient, double *z, double *info)
{
    const int n = t->nz + t->m;
    const double turns = many_turns(t);
    double rate = 1.0, first = 1.0;
    int singular = leaves && leave_zero(t, turns, z, &first), fresh = !leaves, exact = 0;
    double error = measure(t, z, turns);
    if (leaves) rate = error / first;
    else singular = whole_factor(t, 0);
    int status = EXHAUSTED, iteration = 0;
    for (; iteration <= MAX_ITERATIONS; ++iteration) {
        if (!isfinite(error)) {
            status = NOT_FINITE;
            break;
        }
        const int settled = exact && rate > 0.25,
                  foretold =
                      iteration &&
                      error * rate <=
                          0.01 * TARGET; /* a first rate is between two sizes of the terms */
        const int converged = error <= TARGET || (error <= ACCEPT && (settled || foretold));
        if (!converged && iteration == MAX_ITERATIONS) break;
        if (!converged && !fresh && (singular || worth_factors(t, error, rate))) {
            singular = whole_factor(t, 0);
            fresh = 1;
        }
        if (!singular) whole_solve(t, t->r, t->dz);
        if (converged) {
            for (int i = 0; i < n && !singular; ++i) z[i] += t->dz[i];
            status = CONVERGED;
            break;
        }
        if (singular) {
            status = SINGULAR;
            break;
        }
        const double sized = iteration || leaves ? 0.0 : turns;
        double s = 1.0, next = error;
        int accepted = 0, renewed = 0;
        for (int halvings = 0; halvings <= (fresh ? MAX_HALVINGS : 0) && !accepted;
             ++halvings, s *= 0.5) {
            const double enough = (1.0 - 1e-4 * s) * error;
            for (int i = 0; i < n; ++i) t->trial[i] = z[i] + s * t->dz[i];
            whole_residual(t, t->trial, sized);
            next = relative_error(n, t->r, t->known);
            accepted = next < enough || next <= ACCEPT;
            if (!accepted && fresh) {
                renewed = 1;
                if (sized == 0.0) whole_residual(t, t->trial, turns);
                next = relative_error(n, t->r, t->size);
                accepted = largest_ratio(n, t->r, t->size, t->known) < enough || next <= ACCEPT ||
                           (patient && isfinite(next) && natural(t, z, s));
            }
        }
        if (!accepted && !fresh) { /* the factors are too old */
            whole_residual(t, z, turns);
            rate = INFINITY;
            continue;
        }
        if (!accepted) {
            status = isfinite(next) ? STALLED : NOT_FINITE;
            error = next;
            break;
        }
        remember(t, z, t->trial);
        if (sized > 0.0 || renewed) remember(t, t->known, t->size);
        exact = fresh;
        fresh = renewed;
        if (renewed) singular = whole_factor(t, 0);
        next = relative_error(n, t->r, t->known);
        rate = next / error;
        error = next;
    }
    info[0] = iteration;
    info[1] = error;
    info[2] = 0.0;
    for (int i = 0; i < n; ++i)
        if (!(fabs(t->r[i]) <= info[2])) info[2] = fabs(t->r[i]);
    return status;
}

/* Whether the last correction is one of round-off, for which a step takes no other residual; what
 * round-off is to the place of a stiff spring's end is none to its force. */
static int settled(const Tree *t, const double *info)
{
    return !t->m && !t->springs && !t->dampers && info[1] <= TARGET;
}

/* Configuration and momenta after the step with the unknowns in t->at. What is left of r where it
 * was taken last, which the last correction takes away, goes to the momenta: r + rho1 changes with
 * the unknowns by h times less than rho1. */
static void readout(const Tree *t, double *x1)
{
    double *rho1 = x1 + t->nq;
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        const int v = (int)j->v, q = (int)j->q, n = (int)j->size;
        if (v >= t->nv) continue;
        if (j->kind < MANIFOLD) {
            const double rate = rate_of(t, j, t->at);
            x1[q] = j->prescribed > 0 ? t->u[t->nu + v - t->nz] : t->q[q] + t->h * rate;
            rho1[v] = j->prescribed > 0
                          ? rate
                          : t->r[v] + t->k * t->low[v] + t->high[v] +
                                (1 - t->left) * t->h * (t->force[v] - j->damping * rate);
            continue;
        }
        Wide *w = t->wides + (int)j->wide;
        joint_after(t, j, w);
        memcpy(x1 + q, w->end, sizeof(double) * ((int)j->size + (j->turns != 0.0)));
        for (int l = 0; l < n; ++l) {
            const Twist D = twist_of(w->Z1, n, l), S = twist_of(w->S1, n, l);
            rho1[v + l] = t->r[v + l] + t->h * (dot(D.w, w->am) + dot(D.v, w->af) +
                                                dot(S.w, w->bm) + dot(S.v, w->bf));
        }
    }
    if (t->leaders) gather(t, t->k, 1.0, rho1);
    for (int v = 0; t->pushes + t->dampers && v < t->nz; ++v)
        rho1[v] += (1 - t->left) * t->h * t->pushed[v];
}

/* Whether the quaternions of the configuration at the start are some. */
static int on_manifold(const Tree *t)
{
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        const double *q = t->q + (int)j->q;
        if (!j->turns) continue;
        const double off = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1.0;
        if (!(4.0 * ROUNDED * ROUNDED - off * off > 0.0)) return 0;
    }
    return 1;
}

static int all_finite(const double *x, int n)
{
    for (int i = 0; i < n; ++i)
        if (!isfinite(x[i])) return 0;
    return 1;
}

static void load_forces(const Tree *t)
{
    memset(t->force, 0, sizeof(double) * t->all);
    for (int i = 0; i < t->nu; ++i)
        if (t->actuated[i] >= 0.0) t->force[(int)t->actuated[i]] += t->u[i];
}

static int from_zero(const Tree *t, int patient, double *z, double *info)
{
    memset(z, 0, sizeof(double) * (t->nz + t->m));
    return iterate(t, 0, patient, z, info);
}

/* A step that takes no time against its own, but prescribed coordinates move as in t. */
static Tree node_of(const Tree *t)
{
    Tree node = *t;
    node.h *= INSTANT;
    node.k *= INSTANT;
    return node;
}

/* The velocity of the state, into z. */
static int velocity_of(const Tree *t, double *z)
{
    const Tree node = node_of(t);
    memset(z, 0, sizeof(double) * (t->nz + t->m));
    memset(t->dz, 0, sizeof(double) * (t->nz + t->m));
    residual(&node, z, 1.0);
    if (factor(&node)) return SINGULAR;
    solve(&node, t->r, t->dz);
    remember(t, z, t->dz);
    return t->m ? hold_velocity(&node, z) : CONVERGED;
}

static int from_velocity(const Tree *t, int patient, double *z, double *info)
{
    const int status = velocity_of(t, z);
    return status == CONVERGED ? iterate(t, 0, patient, z, info) : status;
}

static int may_have_a_solution(int status) { return status == STALLED || status == EXHAUSTED; }

/* From the velocity of the state by steps that grow from none to h: along the solutions that
 * belong to it. */
static int grow(const Tree *t, double *z, double *info)
{
    double from = 0.0, by = 0.25, *reached = t->reached;
    int status = velocity_of(t, z);
    while (status == CONVERGED && from < 1.0) {
        Tree part = *t;
        const double to = fmin(from + by, 1.0);
        part.h *= to;
        part.k *= to;
        remember(t, reached, z);
        status = iterate(&part, 0, 0, z, info);
        if (status == CONVERGED) {
            from = to;
            by *= 2.0;
        } else if (by > LEAST_GROWTH && may_have_a_solution(status)) {
            remember(t, z, reached);
            by *= 0.25;
            status = CONVERGED;
        }
    }
    if (may_have_a_solution(status)) { /* these end before h */
        remember(t, z, reached);
        status = iterate(t, 0, 1, z, info);
    }
    return status;
}

int nh_step(double *const *a)
{
    const Tree t = tree_at(a);
    double *z = a[Z];
    int status = STALLED;
    load_forces(&t);
    start_constraints(&t);
    if (*a[WARM] != 0.0) status = iterate(&t, 0, 0, z, a[INFO]);
    if (status != CONVERGED) status = iterate(&t, 1, 0, z, a[INFO]);
    if (status != CONVERGED) status = from_zero(&t, 0, z, a[INFO]);
    if (may_have_a_solution(status)) status = from_zero(&t, 1, z, a[INFO]);
    if (may_have_a_solution(status)) status = from_velocity(&t, 0, z, a[INFO]);
    if (may_have_a_solution(status)) status = grow(&t, z, a[INFO]);
    if (status != CONVERGED) return status;
    if (settled(&t, a[INFO])) memcpy(t.at, z, sizeof(double) * t.nz);
    else whole_residual(&t, z, 0.0);
    readout(&t, a[X1]);
    if (!all_finite(a[X1], N_X)) return NOT_FINITE;
    return on_manifold(&t) ? CONVERGED : OUTSIDE;
}
