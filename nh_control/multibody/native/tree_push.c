/* Wrenches that are inputs: torques or forces u e at a point of a body, e in its axes (`turning`)
 * or the world's. At the middle of the step they act on the coordinates of all joints that carry
 * the body like inputs on these: f. Newton's equation leaves the changes of f out, which are of
 * order h^2 of the others; the derivatives have them (tree_linearize.c). */

/* Unit motion of a coordinate's velocity: a twist about the body's origin. */
static Twist unit_motion(const Tree *t, const Joint *j, const Body *b, int l)
{
    const v4 zero = vec(0, 0, 0);
    const int planar = j->size == 3 && !j->turns;
    const int c = j->kind == REVOLUTE ? 2 : j->kind == PRISMATIC ? 3 : l + 2 * planar;
    if (c < 3) return (Twist){b->column[c], zero};
    return (Twist){zero, j->turns == PLACED ? outward(parent_of(t, j), j->column[c - 3])
                                            : b->column[c - 3]};
}

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
            f[(int)j->v + l] += power(w, unit_motion(t, j, b, l));
        w.w += cross(b->p, w.v);
    }
}

/* f of all wrenches where the bodies are, into t->pushed. */
static void push(const Tree *t)
{
    memset(t->pushed, 0, sizeof(double) * t->nv);
    for (int i = 0; i < t->pushes; ++i)
        add_push(t, t->push + i, t->u[(int)t->push[i].input], t->pushed);
}

/* Its part in the residual, and the sizes of its terms. */
static void add_pushes(const Tree *t, int sized)
{
    push(t);
    for (int v = 0; v < t->nz; ++v) {
        t->r[v] += t->left * t->h * t->pushed[v];
        if (sized) t->size[v] += fabs(t->h * t->pushed[v]);
    }
}

/* A coordinate of a joint that carries a body, its unit motion, and those of the middle of the
 * step by its unknown and by the start, all about the body's origin. */
typedef struct {
    int body, at;
    Twist unit, by_z, by_q;
} Carried;

static Twist moved_to(Twist x, v4 from) { return (Twist){x.w, x.v - cross(x.w, from)}; }

/* The coordinates that carry a body; their number. */
static int carriers_of(const Tree *t, int body, const int *place, Carried *c)
{
    int count = 0;
    v4 from = vec(0, 0, 0);
    for (int i = body; i >= 0; i = (int)t->joints[i].parent) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        const int n = (int)j->size;
        for (int l = 0; l < n; ++l, ++count) {
            const Wide *w = t->wides + (int)j->wide;
            const Twist unit = unit_motion(t, j, b, l);
            Twist z = {t->k * unit.w, t->k * unit.v}, q = unit, all[MOST];
            if (n > 1) {
                twists_of(b, w->Zz, n, all);
                z = all[l];
                twists_of(b, w->Zq, n, all);
                q = all[l];
            }
            c[count] = (Carried){i, place[(int)j->v + l], moved_to(unit, from), moved_to(z, from),
                                 moved_to(q, from)};
        }
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

/* Changes of left h f (n) by the unknowns and the start of the n coordinates that carry something
 * pushed, whose `place` this is. */
static void slopes_of_pushes(const Tree *t, int n, const int *place, double *F_z, double *F_q)
{
    memset(F_z, 0, sizeof(double) * n * n);
    memset(F_q, 0, sizeof(double) * n * n);
    for (int i = 0; i < t->pushes; ++i) {
        const Push *p = t->push + i;
        const Twist w = pushing(t, p, t->left * t->h * t->u[(int)p->input]);
        Carried c[n];
        const int count = carriers_of(t, (int)p->body, place, c);
        for (int a = 0; a < count; ++a)
            for (int b = 0; b < count; ++b) {
                F_z[n * c[a].at + c[b].at] += change_of_push(t, p, w, c + a, c[b].body, c[b].by_z);
                F_q[n * c[a].at + c[b].at] += change_of_push(t, p, w, c + a, c[b].body, c[b].by_q);
            }
    }
}
