/* Wrenches that are inputs: torques or forces u e at a point of a body, e in its axes (`turning`)
 * or the world's. At the middle of the step they act on the coordinates of all joints that carry
 * the body like inputs on these: f. Newton's equation leaves the changes of f out, which are of
 * order h^2 of the others; the derivatives have them (linearization.c). */

/* A wrench with the input u about the origin of its body. */
static Twist pushing(const Tree *t, const Push *p, double u)
{
    const Body *b = t->bodies + (int)p->body;
    const v4 e = u * (p->turning ? outward(b, p->e) : p->e);
    return p->torque ? (Twist){e, vec(0, 0, 0)} : (Twist){cross(outward(b, p->at), e), e};
}

/* Adds what a wrench with the input u does on all coordinates. */
static void add_push(const Tree *t, const Push *p, double u, double *f)
{
    Twist w = pushing(t, p, u);
    for (int i = (int)p->body; i >= 0; i = (int)t->joints[i].parent) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        for (int l = 0; l < (int)j->size; ++l)
            f[(int)j->lead + l] += j->ratio * power(w, unit_motion(t, j, b, l));
        w.w += cross(b->p, w.v);
    }
}

/* f of all wrenches and dampers where the bodies are, into t->pushed. */
static void push(const Tree *t)
{
    memset(t->pushed, 0, sizeof(double) * t->nv);
    for (int i = 0; i < t->pushes; ++i)
        add_push(t, t->push + i, t->u[(int)t->push[i].input], t->pushed);
    for (int i = 0; i < t->dampers; ++i) {
        Push end[2];
        const int count = ends_of(t, t->bonds + t->springs + i, end);
        for (int e = 0; e < count; ++e) add_push(t, end + e, 1.0, t->pushed);
    }
}

/* Its part in the residual, and the sizes of its terms. */
static void add_pushes(const Tree *t, int sized)
{
    push(t);
    for (int v = 0; v < t->nz; ++v) t->r[v] += t->left * t->h * t->pushed[v];
    if (!sized) return;
    for (int i = 0; i < t->pushes; ++i) {
        const Push *p = t->push + i;
        const double size = fabs(t->h * t->u[(int)p->input]) * size_of(p->e);
        add_path_sizes(t, (int)p->body, p->at, p->torque ? size : 0.0, p->torque ? 0.0 : size);
    }
    add_damper_sizes(t);
}

/* A coordinate of a joint that carries a body, its unit motion, and those of the middle of the
 * step by its unknown and by the start, all about the body's origin; prescribed ones move the
 * middle from both ends. */
typedef struct {
    int body, at;
    Twist unit, by_z, by_q;
} Carried;

/* A motion about another point, `by` times. */
static Twist moved_to(double by, Twist x, v4 from)
{
    return (Twist){by * x.w, by * (x.v - cross(x.w, from))};
}

/* The coordinates that carry a body; their number. */
static int carriers_of(const Tree *t, int body, const int *place, Carried *c)
{
    int count = 0;
    v4 from = vec(0, 0, 0);
    for (int i = body; i >= 0; i = (int)t->joints[i].parent) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        const int n = (int)j->size;
        Twist unit[MOST], z[MOST], q[MOST];
        motions_of(t, j, b, UNIT, unit);
        motions_of(t, j, b, BY_UNKNOWN, z);
        motions_of(t, j, b, BY_START, q);
        for (int l = 0; l < n; ++l)
            c[count++] = (Carried){i, place[(int)j->lead + l], moved_to(j->ratio, unit[l], from),
                                   moved_to(j->ratio, z[l], from), moved_to(j->ratio, q[l], from)};
        from -= b->p;
    }
    return count;
}

/* The change of a coordinate's f by the motion x of a body that carries the pushed one. */
static double change_of_push(const Tree *t, const Push *p, Twist w, const Carried *on, int moved,
                             Twist x)
{
    Twist change = {cross(x.w, w.w), vec(0, 0, 0)};
    if (p->torque && !p->turning) change.w = vec(0, 0, 0);
    else if (!p->torque && p->turning)
        change = (Twist){cross(x.w, w.w) + cross(x.v, w.v), cross(x.w, w.v)};
    else if (!p->torque)
        change.w = cross(x.v + cross(x.w, outward(t->bodies + (int)p->body, p->at)), w.v);
    double by = power(change, on->unit);
    if (moved > on->body) return by;
    const int placed =
        moved == on->body && t->joints[moved].turns == PLACED && size_of(on->unit.w) == 0.0;
    const Twist turned = {cross(x.w, on->unit.w), cross(x.w, on->unit.v) + cross(x.v, on->unit.w)};
    return placed ? by : by + power(w, turned);
}

/* Adds to F_z and F_q what `slopes_of_pushes` says of one wrench. */
static void add_slopes_of_push(const Tree *t, const Push *p, double u, int n, const int *place,
                               double *F_z, double *F_q)
{
    const Twist w = pushing(t, p, t->left * t->h * u);
    Carried c[t->all];
    const int count = carriers_of(t, (int)p->body, place, c);
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < count; ++b) {
            F_z[n * c[a].at + c[b].at] += change_of_push(t, p, w, c + a, c[b].body, c[b].by_z);
            F_q[n * c[a].at + c[b].at] += change_of_push(t, p, w, c + a, c[b].body, c[b].by_q);
        }
}

/* Changes of left h f (n) by the unknowns, or the ends of prescribed coordinates, and the start of
 * the n coordinates that carry something pushed or damped, whose `place` this is. */
static void slopes_of_pushes(const Tree *t, int n, const int *place, double *F_z, double *F_q)
{
    memset(F_z, 0, sizeof(double) * n * n);
    memset(F_q, 0, sizeof(double) * n * n);
    for (int i = 0; i < t->pushes; ++i)
        add_slopes_of_push(t, t->push + i, t->u[(int)t->push[i].input], n, place, F_z, F_q);
    for (int i = 0; i < t->dampers; ++i) {
        const Bond *c = t->bonds + t->springs + i;
        Push end[2];
        const int count = ends_of(t, c, end);
        for (int e = 0; e < count; ++e) add_slopes_of_push(t, end + e, 1.0, n, place, F_z, F_q);
        add_slopes_of_damper(t, c, n, place, F_z, F_q);
    }
}
