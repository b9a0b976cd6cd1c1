/* Holonomic constraints h(q1) = 0 with multipliers lam behind the tree's unknowns: the tree's rows
 * become r - Dh(q0)^T lam, and with the tree's factors and dz0, its own correction,
 *
 *     Y = r_z^{-1} Dh(q0)^T,   (Dh(q1) q1_z Y) dlam = -h - Dh(q1) q1_z dz0,   dz = dz0 + Y dlam.
 *
 * Every row is between points of bodies a and b, or of the world (-1), s from the one to the
 * other, e directions fixed in the bodies (a's in the world unless it is `turning`):
 *
 *     SQUARE  |s|^2 - value^2, the value a coordinate where it has a place
 *     ALONG   e_a . s
 *     TURNED  e_a . e_b - value */

enum { SQUARE, ALONG, TURNED };

static const Place WORLD = {.column = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};

INLINE const Place *place_of(const Tree *t, double body)
{
    return body < 0 ? &WORLD : t->places + (int)body;
}

/* Poses in the world, and motions (turn, shift of the joint's origin) by every coordinate, of the
 * bodies that constraints hold, at the configuration q. */
static void place_bodies(const Tree *t, const double *q)
{
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        if (!j->held_by) continue;
        const Place *parent = place_of(t, j->parent);
        Place *b = t->places + i;
        Twist *moved = t->motions + (int)j->v;
        b->far = parent->far + size_of(j->p);
        const double *at = q + (int)j->q, along = j->ratio * *at;
        if (j->kind < MANIFOLD) {
            v4 column[3] = {j->column[0], j->column[1], j->column[2]}, p = j->p;
            if (j->kind == REVOLUTE) {
                const double c = cos(along), s = sin(along);
                column[0] = c * j->column[0] + s * j->column[1];
                column[1] = c * j->column[1] - s * j->column[0];
            } else {
                p += along * j->column[0];
                b->far += fabs(along);
            }
            for (int k = 0; k < 3; ++k) b->column[k] = combine(parent->column, column[k]);
            b->p = parent->p + combine(parent->column, p);
            moved->w = j->kind == REVOLUTE ? b->column[2] : vec(0, 0, 0);
            moved->v = j->kind == REVOLUTE ? vec(0, 0, 0) : b->column[0];
            continue;
        }
        Node *o = t->nodes + (int)j->wide;
        const int n = (int)j->size;
        t->functions[(int)j->kind - MANIFOLD].node(at, o->turn, o->at, o->D, o->dD);
        for (int k = 0; k < 3; ++k)
            b->column[k] =
                combine(parent->column,
                        combine(j->column, vec(o->turn[k], o->turn[3 + k], o->turn[6 + k])));
        b->p = parent->p + combine(parent->column, j->p + combine(j->column, load(o->at)));
        b->far += size_of(load(o->at));
        for (int l = 0; l < n; ++l) {
            const Twist z = twist_of(o->D, n, l);
            moved[l] = (Twist){combine(b->column, z.w), combine(b->column, z.v)};
        }
    }
}

/* The configuration after the step with the unknowns of the last residual, into t->end. */
static void reach(const Tree *t)
{
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        const int q = (int)j->q;
        if (j->v >= t->nv) continue;
        if (j->kind < MANIFOLD)
            t->end[q] = j->prescribed > 0 && t->h == t->span ? t->u[t->nu + (int)j->v - t->nz]
                                                             : t->q[q] + t->h * t->bodies[i].rate;
        else if (j->held_by)
            t->functions[(int)j->kind - MANIFOLD].reach(t->q + q, t->at + (int)j->v, &t->h,
                                                        t->end + q, t->nodes[(int)j->wide].Ez);
    }
}

INLINE Twist wrench(v4 torque, v4 force) { return (Twist){torque, force}; }

static Held hold(const Tree *t, const Constraint *c, const double *q)
{
    const Place *a = place_of(t, c->a), *b = place_of(t, c->b);
    const v4 zero = vec(0, 0, 0), at_b = b->p + combine(b->column, c->at_b);
    Held o = {.from = a->p + combine(a->column, c->at_a),
              .e_a = c->turning ? combine(a->column, c->e_a) : c->e_a};
    o.s = at_b - o.from;
    const double far = a->far + size_of(c->at_a) + b->far + size_of(c->at_b);
    if (c->kind == SQUARE) {
        o.length = c->length_q < 0 ? c->value : q[(int)c->length_q];
        o.value = dot(o.s, o.s) - o.length * o.length;
        o.size = 2.0 * size_of(o.s) * far + o.length * o.length;
        o.force = 2.0 * size_of(o.s);
        o.torque = o.force * size_of(o.s);
        o.on_a = wrench(zero, -2.0 * o.s);
        o.on_b = wrench(zero, 2.0 * o.s);
    } else if (c->kind == ALONG) {
        o.value = dot(o.e_a, o.s);
        o.size = size_of(o.e_a) * far;
        o.force = size_of(o.e_a);
        o.torque = o.force * size_of(o.s);
        o.on_a = wrench(c->turning ? cross(o.e_a, o.s) : zero, -o.e_a);
        o.on_b = wrench(cross(o.s, o.e_a), o.e_a);
    } else {
        o.e_a = combine(a->column, c->e_a);
        o.e_b = combine(b->column, c->e_b);
        o.value = dot(o.e_a, o.e_b) - c->value;
        o.size = 1.0 + fabs(c->value);
        o.torque = size_of(o.e_a) * size_of(o.e_b);
        o.on_a = wrench(cross(o.e_a, o.e_b), zero);
        o.on_b = wrench(cross(o.e_b, o.e_a), zero);
    }
    return o;
}

/* A coordinate's motion about another point. */
INLINE Twist about(const Tree *t, int body, int v, v4 point)
{
    const Twist m = t->motions[v];
    return (Twist){m.w, m.v + cross(m.w, point - t->places[body].p)};
}

/* Derivatives of a constraint by all coordinates, g (nv), where its bodies are placed. */
static void slope(const Tree *t, const Constraint *c, const Held *o, double *g)
{
    memset(g, 0, sizeof(double) * t->nv);
    for (int end = 0; end < 2; ++end)
        for (int i = (int)(end ? c->b : c->a); i >= 0; i = (int)t->joints[i].parent)
            for (int l = 0, v = (int)t->joints[i].v; l < (int)t->joints[i].size; ++l)
                g[(int)t->joints[i].lead + l] +=
                    t->joints[i].ratio *
                    power(end ? o->on_b : o->on_a, about(t, i, v + l, o->from));
    if (c->length_q >= 0) g[(int)c->length_v] -= 2.0 * o->length;
}

/* Bounds of the terms of a constraint's derivatives, g (nv). */
static void slope_sizes(const Tree *t, const Constraint *c, const Held *o, double *g)
{
    memset(g, 0, sizeof(double) * t->nv);
    for (int end = 0; end < 2; ++end)
        for (int i = (int)(end ? c->b : c->a); i >= 0; i = (int)t->joints[i].parent)
            for (int l = 0, v = (int)t->joints[i].v; l < (int)t->joints[i].size; ++l) {
                const double turn = size_of(t->motions[v + l].w),
                             lever = size_of(o->from - t->places[i].p);
                g[(int)t->joints[i].lead + l] +=
                    fabs(t->joints[i].ratio) * (turn * (o->torque + lever * o->force) +
                                                size_of(t->motions[v + l].v) * o->force);
            }
    if (c->length_q >= 0) g[(int)c->length_v] += 2.0 * o->length;
}

/* All constraints at the configuration q, into t->holds. */
static void hold_all(const Tree *t, const double *q)
{
    place_bodies(t, q);
    for (int r = 0; r < t->m; ++r) t->holds[r] = hold(t, t->constraints + r, q);
}

/* Their derivatives too, into all (m, nv). */
static void slopes_at(const Tree *t, const double *q, double *all)
{
    hold_all(t, q);
    for (int r = 0; r < t->m; ++r)
        slope(t, t->constraints + r, t->holds + r, all + (size_t)t->nv * r);
}

/* Changes of the wrenches by motions x_a and x_b of the bodies, about the place of a's point. */
static void bent(const Constraint *c, const Held *o, Twist x_a, Twist x_b, Twist *on_a,
                 Twist *on_b)
{
    const v4 zero = vec(0, 0, 0), at_b = x_b.v + cross(x_b.w, o->s), s = at_b - x_a.v;
    if (c->kind == SQUARE) {
        const v4 force = 2.0 * o->s;
        *on_a = wrench(-cross(x_a.v, force), -2.0 * s);
        *on_b = wrench(cross(at_b, force) + 2.0 * cross(o->s, s), 2.0 * s);
    } else if (c->kind == ALONG) {
        const v4 e = c->turning ? cross(x_a.w, o->e_a) : zero,
                 moment = cross(e, o->s) + cross(o->e_a, s);
        *on_a = wrench((c->turning ? moment : zero) - cross(x_a.v, o->e_a), -e);
        *on_b = wrench(cross(at_b, o->e_a) + cross(o->s, e), e);
    } else {
        const v4 e_a = cross(x_a.w, o->e_a), e_b = cross(x_b.w, o->e_b),
                 moment = cross(e_a, o->e_b) + cross(o->e_a, e_b);
        *on_a = wrench(moment, zero);
        *on_b = wrench(-moment, zero);
    }
}

static int carries(const Tree *t, int body, double end)
{
    int i = (int)end;
    while (i > body) i = (int)t->joints[i].parent;
    return i == body;
}

/* The change of coordinate l's motion, of body i, by the motion x of coordinate m of a body k that
 * carries it, or is it. */
static Twist turned_motion(const Tree *t, int i, int l, int k, int m, Twist x, v4 point)
{
    const Twist y = about(t, i, (int)t->joints[i].v + l, point);
    Twist out = {cross(x.w, y.w), cross(x.w, y.v) + cross(x.v, y.w)};
    const Joint *j = t->joints + i;
    if (i != k || j->kind < MANIFOLD) return out;
    const int n = (int)j->size;
    const double *d = t->nodes[(int)j->wide].dD + n * l + m; /* of D (6, n) by coordinates */
    const Place *b = t->places + i;
    const v4 w = combine(b->column, vec(d[0], d[n * n], d[2 * n * n])),
             v = combine(b->column, vec(d[3 * n * n], d[4 * n * n], d[5 * n * n]));
    out.w += w;
    out.v += v + cross(w, point - b->p);
    return out;
}

/* Adds to a lane of `by` (nv, LANES) the derivatives of lam . Dh by coordinate m of body k, where
 * constraints are held. */
static void bend_rows(const Tree *t, int k, int m, double *by)
{
    const double *lam = t->at + t->nz, ratio = t->joints[k].ratio;
    const int moved = (int)t->joints[k].v + m;
    for (int r = 0; r < t->m; ++r) {
        const Constraint *c = t->constraints + r;
        const Twist still = {vec(0, 0, 0), vec(0, 0, 0)};
        const int a = carries(t, k, c->a), b = carries(t, k, c->b);
        if (c->length_q >= 0 && moved == (int)c->length_v) by[LANES * moved] -= 2.0 * lam[r];
        if (!a && !b) continue;
        const Held *o = t->holds + r;
        Twist x = about(t, k, moved, o->from), on[2];
        x = (Twist){ratio * x.w, ratio * x.v};
        bent(c, o, a ? x : still, b ? x : still, on, on + 1);
        for (int end = 0; end < 2; ++end)
            for (int i = (int)(end ? c->b : c->a); i >= 0; i = (int)t->joints[i].parent) {
                const int carried = i >= k && (end ? b : a);
                for (int l = 0, v = (int)t->joints[i].v; l < (int)t->joints[i].size; ++l) {
                    double change = power(on[end], about(t, i, v + l, o->from));
                    if (carried)
                        change += power(end ? o->on_b : o->on_a,
                                        turned_motion(t, i, l, k, m, x, o->from));
                    by[LANES * ((int)t->joints[i].lead + l)] +=
                        lam[r] * t->joints[i].ratio * change;
                }
            }
    }
}
