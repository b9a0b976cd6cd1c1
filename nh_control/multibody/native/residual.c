/* The residual: twists from the root, wrenches from the leaves. With Lq, Lv the derivatives of the
 * Lagrangian at the middle of the step along a coordinate,
 *
 *     r = rho + h/2 Lq - Lv + left h f,   rho1 = h/2 Lq + Lv + (1 - left) h f,
 *     Lq = S . a + n . b,   Lv = S . b,   n = [nu, S],   a = (am, weight gravity),
 *
 * S a joint's unit twist, b the momentum of all that the joint carries. */

static double rate_of(const Tree *t, const Joint *j, const double *z)
{
    const int v = (int)j->lead;
    return j->ratio *
           (j->prescribed > 0 ? (t->u[t->nu + v - t->nz] - t->q[(int)j->q]) / t->span : z[v]);
}

/* The pose of a body. */
INLINE void place_scalar(const Tree *t, const Joint *j, const Body *parent, Body *b, double z,
                         int plane)
{
    const double q = j->ratio * t->q[(int)j->q] + t->k * z;
    if (plane) {
        for (int i = 0; i < 2; ++i)
            b->column[i] =
                parent->column[0] * j->column[i][0] + parent->column[1] * j->column[i][1];
        b->column[2] = parent->column[2] * j->column[2][2];
    } else
        for (int i = 0; i < 3; ++i) b->column[i] = outward(parent, j->column[i]);
    b->p = outward(parent, j->p);
    if (j->kind == REVOLUTE) {
        const double c = cos(q), s = sin(q);
        const v4 x = b->column[0], y = b->column[1];
        b->column[0] = c * x + s * y;
        b->column[1] = c * y - s * x;
    } else b->p += q * b->column[0];
    b->rate = z;
}

INLINE void place_wide(const Tree *t, const Joint *j, const Body *parent, Body *b, const double *z)
{
    Wide *w = t->wides + (int)j->wide;
    joint_middle(t, j, z, w);
    for (int i = 0; i < 3; ++i)
        b->column[i] =
            outward(parent, combine(j->column, vec(w->turn[i], w->turn[3 + i], w->turn[6 + i])));
    b->p = outward(parent, j->p + combine(j->column, load(w->at)));
}

/* The size of the terms of the velocity that the parent gives a body. */
INLINE double given_speed(const Body *parent, const Body *b)
{
    return parent->speed + b->lever * parent->turning;
}

/* The sizes of the terms of a body's motion, its position in the parent that moves from the start,
 * and of its own wrenches. */
INLINE void size_terms(const Tree *t, const Joint *j, const Body *parent, Body *b)
{
    double turn = 0.0, shift = 0.0;
    b->lever = size_of(j->p);
    if (j->kind == REVOLUTE) turn = fabs(b->rate);
    else if (j->kind == PRISMATIC) {
        shift = fabs(b->rate);
        b->lever += fabs(j->ratio * t->q[(int)j->q]);
    } else {
        const Wide *w = t->wides + (int)j->wide;
        turn = size_of(load(w->twist));
        shift = size_of(load(w->twist + 3));
        b->lever += size_of(load(w->at));
    }
    b->lever += fabs(t->k) * shift;
    b->turning = parent->turning + turn;
    b->speed = given_speed(parent, b) + shift;
    b->torque = size_of(b->first) * size_of(t->gravity);
    b->moment =
        size_of(b->first) * b->speed +
        (size_of(j->inertia[0]) + size_of(j->inertia[1]) + size_of(j->inertia[2])) * b->turning;
    b->force = j->mass * b->speed + size_of(b->first) * b->turning;
}

INLINE void outward_sweep(const Tree *t, const double *z, int sized, int plane)
{
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        const Body *parent = parent_of(t, j);
        Body *b = t->bodies + i;
        if (j->prescribed == IDLE) {
            b->rate = rate_of(t, j, z);
            continue;
        }
        const int wide = !plane && j->kind >= MANIFOLD;
        if (wide) place_wide(t, j, parent, b, z);
        else place_scalar(t, j, parent, b, rate_of(t, j, z), plane);
        b->xi_w = b->nu_w = parent->xi_w;
        b->xi_v = b->nu_v = parent->xi_v - by_turn(b->p, parent->xi_w, plane);
        if (wide) {
            const double *s = t->wides[(int)j->wide].twist;
            b->xi_w += outward(b, load(s));
            b->xi_v += outward(b, load(s + 3));
        } else if (j->kind == REVOLUTE) b->xi_w += b->rate * b->column[2];
        else b->xi_v += b->rate * b->column[0];
        b->first = outward(b, j->first);
        b->am = cross(b->first, t->gravity);
        b->bm = cross(b->first, b->xi_v);
        b->bm += plane ? j->inertia[2][2] * b->xi_w
                       : outward(b, combine(j->inertia, inward(b, b->xi_w)));
        b->bf = j->mass * b->xi_v - by_turn(b->first, b->xi_w, plane);
        if (t->springs + t->dampers) {
            b->at = b->p + (j->parent < 0 ? vec(0, 0, 0) : parent->at);
            b->pulled = vec(0, 0, 0);
            b->strain = 0.0;
        }
        if (sized) size_terms(t, j, parent, b);
    }
}

/* A bound on the terms of the force on all that a body carries. */
INLINE double load_size(const Tree *t, const Joint *j, const Body *b)
{
    return j->weight * size_of(t->gravity) + b->strain;
}

/* Sizes of the terms of the wrench that bends a joint's rows: torque and force. */
INLINE double torque_size(const Body *parent, const Body *b)
{
    return b->torque + parent->turning * b->moment + given_speed(parent, b) * b->force;
}
INLINE double force_size(const Tree *t, const Joint *j, const Body *parent, const Body *b)
{
    return load_size(t, j, b) + parent->turning * b->force;
}

/* Adjoints of the joint's displacement and twist, and its rows. */
static void wide_rows(const Tree *t, const Joint *j, const Body *b)
{
    Wide *w = t->wides + (int)j->wide;
    const int n = (int)j->size, v = (int)j->v;
    w->am = inward(b, b->am + cross(b->bm, b->nu_w) + cross(b->bf, b->nu_v));
    w->af = inward(b, load_on(t, j, b) + cross(b->bf, b->nu_w));
    w->bm = inward(b, b->bm);
    w->bf = inward(b, b->bf);
    const Body *parent = parent_of(t, j);
    const double torque = torque_size(parent, b), force = force_size(t, j, parent, b);
    for (int l = 0; l < n; ++l) {
        const double *D = w->Z0 + l, *S = w->S0 + l;
        const v4 zw = vec(D[0], D[n], D[2 * n]), zv = vec(D[3 * n], D[4 * n], D[5 * n]);
        const v4 sw = vec(S[0], S[n], S[2 * n]), sv = vec(S[3 * n], S[4 * n], S[5 * n]);
        t->r[v + l] = t->rho[v + l] +
                      t->h * (dot(zw, w->am) + dot(zv, w->af) + dot(sw, w->bm) + dot(sv, w->bf));
        t->size[v + l] =
            fabs(t->rho[v + l]) + fabs(t->h) * (size_of(zw) * torque + size_of(zv) * force +
                                                size_of(sw) * b->moment + size_of(sv) * b->force);
    }
}

INLINE void inward_sweep(const Tree *t, const double *z, double turns, int sized, int plane)
{
    const double h = fabs(t->h), k = fabs(t->k);
    for (int i = t->n - 1; i >= 0; --i) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        const int v = (int)j->v;
        if (j->prescribed == IDLE) continue;
        if (!plane && j->kind >= MANIFOLD) wide_rows(t, j, b);
        else {
            double low, high, sizes = 0.0;
            const v4 S = axis_of(j, b->column);
            if (j->kind == REVOLUTE) {
                v4 all = S * b->am + by_turn(b->nu_v, S, plane) * b->bf;
                if (!plane) all += cross(b->nu_w, S) * b->bm;
                low = sum(all);
                high = dot(S, b->bm);
                if (sized) sizes = k * torque_size(parent_of(t, j), b) + b->moment;
            } else {
                low = sum(S * load_on(t, j, b) - by_turn(S, b->nu_w, plane) * b->bf);
                high = dot(S, b->bf);
                if (sized) sizes = k * force_size(t, j, parent_of(t, j), b) + b->force;
            }
            const double q = t->q[(int)j->q] + t->k * b->rate;
            t->low[v] = low += j->pull - j->stiffness * q;
            t->high[v] = high;
            if (j->prescribed == FOLLOWS) t->size[v] = turns * sizes;
            if (!j->prescribed || j->prescribed == SHARED) {
                t->r[v] = t->rho[v] + t->k * low - high +
                          t->left * t->h * (t->force[v] - j->damping * z[v]);
                if (sized)
                    t->size[v] = fabs(t->rho[v]) + turns * sizes +
                                 k * (fabs(j->pull) + j->stiffness * fabs(q)) +
                                 h * (fabs(t->force[v]) + j->damping * fabs(z[v]));
            }
        }
        if (j->parent >= 0) {
            Body *parent = t->bodies + (int)j->parent;
            parent->am += b->am + cross(b->p, load_on(t, j, b));
            parent->bm += b->bm + cross(b->p, b->bf);
            parent->bf += b->bf;
            if (t->springs) parent->pulled += b->pulled;
            if (!sized) continue;
            parent->torque += b->torque + b->lever * load_size(t, j, b);
            if (t->springs) parent->strain += b->strain;
            parent->moment += b->moment + b->lever * b->force;
            parent->force += b->force;
        }
    }
}

/* Adds to the rows of joints that others follow what these have of the derivatives of the
 * Lagrangian. */
static void gather(const Tree *t, double by_low, double by_high, double *row)
{
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        if (j->prescribed == FOLLOWS)
            row[(int)j->lead] +=
                j->ratio * (by_low * t->low[(int)j->v] + by_high * t->high[(int)j->v]);
    }
}

static void gather_sizes(const Tree *t)
{
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        if (j->prescribed == FOLLOWS) t->size[(int)j->lead] += fabs(j->ratio) * t->size[(int)j->v];
    }
}

INLINE void sweep(const Tree *t, const double *z, double turns, int plane)
{
    if (turns > 0.0) {
        outward_sweep(t, z, 1, plane);
        pull_springs(t, 1);
        inward_sweep(t, z, turns, 1, plane);
    } else {
        outward_sweep(t, z, 0, plane);
        pull_springs(t, 0);
        inward_sweep(t, z, 0.0, 0, plane);
    }
}

/* r and the sizes of its terms, into t->r and t->size; r alone where `turns` is 0. Angles of many
 * turns have the round-off of their own size. */
static void residual(const Tree *t, const double *z, double turns)
{
    memcpy(t->at, z, sizeof(double) * t->nz);
    if (t->plane) sweep(t, z, turns, 1);
    else sweep(t, z, turns, 0);
    if (t->pushes + t->dampers) add_pushes(t, turns > 0.0);
    if (!t->leaders) return;
    gather(t, t->k, -1.0, t->r);
    if (turns > 0.0) gather_sizes(t);
}

static double many_turns(const Tree *t)
{
    double most = 1.0;
    for (int i = 0; i < t->n; ++i)
        if (t->joints[i].kind == REVOLUTE)
            most = fmax(most, fabs(t->joints[i].ratio * t->q[(int)t->joints[i].q]));
    return most;
}
