/* The residual: twists from the root, wrenches from the leaves. With Lq, Lv the derivatives of the Lagrangian at the middle of the step along a coordinate,
 *   r = rho + h/2 Lq - Lv + left h f,   rho1 = h/2 Lq + Lv + (1 - left) h f,   S: a joint's unit twist, n = [nu, S]
 *   Lq = S . a + n . b,   Lv = S . b,   a = (am, weight gravity),   b = momentum of all that the joint carries. */

static double rate_of(const Tree *t, const Joint *j, const double *z)
{
    const int v = (int)j->v;
    return j->prescribed ? (t->u[t->nu + v - t->nz] - t->q[(int)j->q]) / t->span : z[v];
}

/* Pose in the parent, and `nu`, `xi`. */
INLINE void place_scalar(const Tree *t, const Joint *j, Body *b, double z)
{
    const double q = t->q[(int)j->q] + t->k * z;
    if (j->kind == REVOLUTE) {
        const double c = cos(q), s = sin(q);
        const v4 turned = vec(c, c, 1.0), aside = vec(s, -s, 0.0);
        for (int i = 0; i < 3; ++i) b->row[i] = j->row[i] * turned + SHUFFLE(j->row[i], 1, 0, 2, 3) * aside;
        b->column[0] = c * j->column[0] + s * j->column[1];
        b->column[1] = c * j->column[1] - s * j->column[0];
        b->column[2] = j->column[2];
        b->p = j->p;
    } else {
        for (int i = 0; i < 3; ++i) b->row[i] = j->row[i], b->column[i] = j->column[i];
        b->p = j->p + q * j->column[2];
    }
    b->rate = z;
}

INLINE void place_wide(const Tree *t, const Joint *j, Body *b, const double *z)
{
    Wide *w = t->wides + (int)j->wide;
    joint_middle(t, j, z, w);
    for (int i = 0; i < 3; ++i) {
        b->row[i] = vec(0, 0, 0);
        for (int l = 0; l < 3; ++l) b->row[i] += j->row[i][l] * load(w->turn + 3 * l);
    }
    for (int i = 0; i < 3; ++i) b->column[i] = vec(b->row[0][i], b->row[1][i], b->row[2][i]);
    b->p = j->p + combine(j->column, load(w->at));
}

INLINE void outward_sweep(const Tree *t, const double *z, int sized)
{
    const v4 zero = vec(0, 0, 0);
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        Body *b = t->bodies + i;
        const int wide = j->kind >= MANIFOLD;
        if (j->prescribed == IDLE) {
            b->rate = rate_of(t, j, z);
            continue;
        }
        if (wide) place_wide(t, j, b, z);
        else place_scalar(t, j, b, rate_of(t, j, z));
        const Body *parent = t->bodies + (int)j->parent;
        const int free = j->parent < 0;
        const v4 w = free ? zero : parent->xi_w, v = free ? zero : parent->xi_v, g = free ? t->gravity : parent->gravity;
        b->xi_w = b->nu_w = outward(b, w);
        b->xi_v = b->nu_v = outward(b, v - cross(b->p, w));
        b->gravity = outward(b, g);
        if (wide) {
            const double *s = t->wides[(int)j->wide].twist;
            b->xi_w += load(s);
            b->xi_v += load(s + 3);
        } else if (j->kind == REVOLUTE) b->xi_w[2] += b->rate;
        else b->xi_v[2] += b->rate;
        b->am = cross(j->first, b->gravity);
        b->bm = combine(j->inertia, b->xi_w) + cross(j->first, b->xi_v);
        b->bf = j->mass * b->xi_v - cross(j->first, b->xi_w);
        b->torque = size_of(j->first) * size_of(b->gravity);
        b->moment = size_of(b->bm);
        b->force = size_of(b->bf);
    }
}

/* Adjoints of the joint's displacement and twist, and its rows. */
static void wide_rows(const Tree *t, const Joint *j, const Body *b)
{
    Wide *w = t->wides + (int)j->wide;
    const int n = (int)j->size, v = (int)j->v;
    w->am = b->am + cross(b->bm, b->nu_w) + cross(b->bf, b->nu_v);
    w->af = j->weight * b->gravity + cross(b->bf, b->nu_w);
    w->bm = b->bm;
    w->bf = b->bf;
    const double torque = b->torque + size_of(b->nu_w) * b->moment + size_of(b->nu_v) * b->force;
    const double force = j->weight * size_of(b->gravity) + size_of(b->nu_w) * b->force;
    for (int l = 0; l < n; ++l) {
        const double *D = w->Z0 + l, *S = w->S0 + l;
        const v4 zw = vec(D[0], D[n], D[2 * n]), zv = vec(D[3 * n], D[4 * n], D[5 * n]);
        const v4 sw = vec(S[0], S[n], S[2 * n]), sv = vec(S[3 * n], S[4 * n], S[5 * n]);
        t->r[v + l] = t->rho[v + l] + t->h * (dot(zw, w->am) + dot(zv, w->af) + dot(sw, w->bm) + dot(sv, w->bf));
        t->size[v + l] = fabs(t->rho[v + l]) + fabs(t->h) * (size_of(zw) * torque + size_of(zv) * force + size_of(sw) * b->moment + size_of(sv) * b->force);
    }
}

INLINE void inward_sweep(const Tree *t, const double *z, double turns, int sized)
{
    const double h = fabs(t->h), k = fabs(t->k);
    for (int i = t->n - 1; i >= 0; --i) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        const int v = (int)j->v;
        if (j->prescribed == IDLE) continue;
        if (j->kind >= MANIFOLD) wide_rows(t, j, b);
        else {
            double low, high, sizes = 0.0;
            if (j->kind == REVOLUTE) {
                low = b->am[2] + b->bm[0] * b->nu_w[1] - b->bm[1] * b->nu_w[0] + b->bf[0] * b->nu_v[1] - b->bf[1] * b->nu_v[0];
                high = b->bm[2];
                if (sized) sizes = k * (b->torque + size_of(b->nu_w) * b->moment + size_of(b->nu_v) * b->force) + b->moment;
            } else {
                low = j->weight * b->gravity[2] + b->bf[0] * b->nu_w[1] - b->bf[1] * b->nu_w[0];
                high = b->bf[2];
                if (sized) sizes = k * (j->weight * size_of(b->gravity) + size_of(b->nu_w) * b->force) + b->force;
            }
            const double q = t->q[(int)j->q] + t->k * b->rate;
            t->low[v] = low += j->pull - j->stiffness * q;
            t->high[v] = high;
            if (!j->prescribed) {
                t->r[v] = t->rho[v] + t->k * low - high + t->left * t->h * (t->force[v] - j->damping * z[v]);
                if (sized) t->size[v] = fabs(t->rho[v]) + turns * sizes + k * (fabs(j->pull) + j->stiffness * fabs(q)) + h * (fabs(t->force[v]) + j->damping * fabs(z[v]));
            }
        }
        if (j->parent >= 0) {
            Body *parent = t->bodies + (int)j->parent;
            const v4 f = inward(b, b->bf);
            parent->am += inward(b, b->am) + j->weight * cross(b->p, parent->gravity);
            parent->bm += inward(b, b->bm) + cross(b->p, f);
            parent->bf += f;
            if (!sized) continue;
            const double lever = size_of(b->p);
            parent->torque += b->torque + lever * j->weight * size_of(parent->gravity);
            parent->moment += b->moment + lever * b->force;
            parent->force += b->force;
        }
    }
}

/* r and the sizes of its terms, into t->r and t->size; r alone where `turns` is 0. Angles of many turns have the round-off of their own size. */
static void residual(const Tree *t, const double *z, double turns)
{
    memcpy(t->at, z, sizeof(double) * t->nz);
    if (turns > 0.0) {
        outward_sweep(t, z, 1);
        inward_sweep(t, z, turns, 1);
    } else {
        outward_sweep(t, z, 0);
        inward_sweep(t, z, 0.0, 0);
    }
}

static double many_turns(const Tree *t)
{
    double most = 1.0;
    for (int i = 0; i < t->n; ++i)
        if (t->joints[i].kind == REVOLUTE) most = fmax(most, fabs(t->q[(int)t->joints[i].q]));
    return most;
}
