/* Springs and dampers between points of two bodies, a and b, or of the world (-1). With s from the
 * one point to the other, l = |s|, at the middle of the step, a is pulled by
 *
 *     F = stiffness (1 - rest / l) s,   or   F = damping (s . s') / l^2 s,
 *
 * and b by -F. Springs have a potential: their forces and torques pass inward with the weights.
 * Dampers act like wrenches (external_wrenches.c). What changes of F do, in Newton's equation:
 * low_rank_update.c. */

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

/* Motions of a body by a joint's coordinates, about its origin and in the world's axes: that the
 * start leaves the end, and the other way round, times h; of the middle by the unknowns, or the
 * ends of prescribed coordinates, and by the start; of the twist by the unknowns; of velocities.
 */
enum { BEFORE, AFTER, BY_UNKNOWN, BY_START, RATE, UNIT };
static void motions_of(const Tree *t, const Joint *j, const Body *b, int kind, Twist *all)
{
    const Wide *w = t->wides + (int)j->wide;
    const double *const of[] = {w->Z0, w->Z1, w->Zz, w->Zq, w->Sz};
    const int n = (int)j->size, held = j->prescribed > 0;
    double by = kind <= AFTER ? t->h : 1.0;
    if (n == 1) by = kind <= BY_UNKNOWN ? t->k : 1.0;
    if (held && (kind == BY_UNKNOWN || kind == BY_START)) by = 0.5;
    if (n > 1 && kind != UNIT) twists_of(b, of[kind], n, all);
    for (int l = 0; l < n; ++l) {
        const Twist x = n > 1 && kind != UNIT ? all[l] : unit_motion(t, j, b, l);
        all[l] = (Twist){by * x.w, by * x.v};
    }
}

INLINE v4 lever_of(const Tree *t, int body, v4 at)
{
    return body < 0 ? at : outward(t->bodies + body, at);
}
static v4 point_of(const Tree *t, int body, v4 at)
{
    return body < 0 ? at : t->bodies[body].at + lever_of(t, body, at);
}
static v4 velocity_of_point(const Tree *t, int body, v4 lever)
{
    const Body *b = t->bodies + body;
    return body < 0 ? vec(0, 0, 0) : b->xi_v + cross(b->xi_w, lever);
}

/* Sizes of the terms of a point's position, and of its velocity. */
static double far_of(const Tree *t, int body, v4 at)
{
    double far = size_of(at);
    for (; body >= 0; body = (int)t->joints[body].parent) far += t->bodies[body].lever;
    return far;
}
static double speed_of(const Tree *t, int body, v4 at)
{
    const Body *b = t->bodies + body;
    return body < 0 ? 0.0 : b->speed + b->turning * size_of(at);
}

/* s, and s'. */
static v4 stretch(const Tree *t, const Bond *c)
{
    return point_of(t, (int)c->b, c->at_b) - point_of(t, (int)c->a, c->at_a);
}
static v4 stretching(const Tree *t, const Bond *c)
{
    const int a = (int)c->a, b = (int)c->b;
    return velocity_of_point(t, b, lever_of(t, b, c->at_b)) -
           velocity_of_point(t, a, lever_of(t, a, c->at_a));
}

/* Without a rest length the points may meet. */
static v4 spring_force(const Bond *c, v4 s)
{
    return (c->rest == 0.0 ? c->stiffness : c->stiffness * (1.0 - c->rest / sqrt(dot(s, s)))) * s;
}

/* The derivative of F (3, 3) by s. */
static void spring_slope(const Bond *c, v4 s, v4 *K)
{
    const double l = sqrt(dot(s, s)), bent = c->rest == 0.0 ? 0.0 : c->stiffness * c->rest / l;
    for (int i = 0; i < 3; ++i)
        K[i] = (c->stiffness - bent) * UNITS[i] + (bent ? bent / (l * l) * s[i] * s : 0.0 * s);
}

static v4 damper_force(const Bond *c, v4 s, v4 rate)
{
    return c->damping * dot(s, rate) / dot(s, s) * s;
}

/* The change of a damper's F by changes of s and s'. */
static v4 damper_change(const Bond *c, v4 s, v4 rate, v4 ds, v4 drate)
{
    const double square = dot(s, s), fast = dot(s, rate) / square,
                 change = (dot(ds, rate) + dot(s, drate) - 2.0 * fast * dot(s, ds)) / square;
    return c->damping * (fast * ds + change * s);
}

/* The force on a of a spring; of a damper that which is, times h/2, its part before the step. */
static v4 bond_force(const Tree *t, const Bond *c)
{
    const v4 s = stretch(t, c);
    if (c < t->bonds + t->springs) return spring_force(c, s);
    return 2.0 * t->left * damper_force(c, s, stretching(t, c));
}

/* Adds the force of a spring, with a bound on its terms, to a body. */
static void pull(const Tree *t, int body, v4 at, v4 force, double size)
{
    if (body < 0) return;
    Body *b = t->bodies + body;
    const v4 lever = outward(b, at);
    b->am += cross(lever, force);
    b->pulled += force;
    b->torque += size_of(at) * size;
    b->strain += size;
}

static void pull_springs(const Tree *t, int sized)
{
    for (int i = 0; i < t->springs; ++i) {
        const Bond *c = t->bonds + i;
        const int a = (int)c->a, b = (int)c->b;
        const v4 force = bond_force(t, c);
        const double size =
            sized ? fabs(c->stiffness) * (far_of(t, a, c->at_a) + far_of(t, b, c->at_b) + c->rest)
                  : 0.0;
        pull(t, a, c->at_a, force, size);
        pull(t, b, c->at_b, -force, size);
    }
}

/* The forces of a damper on the ends that are not of the world; their number. */
static int ends_of(const Tree *t, const Bond *c, Push *end)
{
    const v4 force = damper_force(c, stretch(t, c), stretching(t, c));
    int count = 0;
    if (c->a >= 0) end[count++] = (Push){.body = c->a, .at = c->at_a, .e = force};
    if (c->b >= 0) end[count++] = (Push){.body = c->b, .at = c->at_b, .e = -force};
    return count;
}

/* Adds to three rows (nv) what three e give, `by` times, in the motions of a point. */
static void add_path(const Tree *t, int body, v4 at, const v4 *e, double by, int kind,
                     double *rows)
{
    v4 lever = lever_of(t, body, at);
    for (int i = body; i >= 0; i = (int)t->joints[i].parent) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        Twist all[MOST];
        motions_of(t, j, b, kind, all);
        for (int l = 0; l < (int)j->size; ++l) {
            const v4 moved = by * j->ratio * (all[l].v + cross(all[l].w, lever));
            for (int k = 0; k < 3; ++k) rows[t->nv * k + (int)j->lead + l] += dot(e[k], moved);
        }
        lever += b->p;
    }
}

/* What three forces e on a, and -e on b, give, `by` times, in the motions of all coordinates. */
static void bond_rows(const Tree *t, const Bond *c, const v4 *e, double by, int kind, double *rows)
{
    memset(rows, 0, sizeof(double) * 3 * t->nv);
    add_path(t, (int)c->a, c->at_a, e, by, kind, rows);
    add_path(t, (int)c->b, c->at_b, e, -by, kind, rows);
}

/* Adds the sizes of the terms of what a torque and a force at a point do on all coordinates. */
static void add_path_sizes(const Tree *t, int body, v4 at, double torque, double force)
{
    double lever = size_of(at);
    for (int i = body; i >= 0; i = (int)t->joints[i].parent) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        for (int l = 0; l < (int)j->size; ++l) {
            const Twist unit = unit_motion(t, j, b, l);
            t->size[(int)j->lead + l] +=
                fabs(j->ratio) *
                (force * (size_of(unit.v) + lever * size_of(unit.w)) + torque * size_of(unit.w));
        }
        lever += b->lever;
    }
}

static void add_damper_sizes(const Tree *t)
{
    for (int i = t->springs; i < t->springs + t->dampers; ++i) {
        const Bond *c = t->bonds + i;
        const int a = (int)c->a, b = (int)c->b;
        const double size =
            fabs(t->h * c->damping) * (speed_of(t, a, c->at_a) + speed_of(t, b, c->at_b));
        add_path_sizes(t, a, c->at_a, 0.0, size);
        add_path_sizes(t, b, c->at_b, 0.0, size);
    }
}

/* Changes of a damper's F by the unknowns, or the ends of prescribed coordinates, and by the start
 * of all coordinates that carry one of its ends, `by` times that of s: z and q (3, nv). */
static void change_by_path(const Tree *t, const Bond *c, int body, v4 at, double by, double *z,
                           double *q)
{
    const v4 s = stretch(t, c), rate = stretching(t, c);
    v4 lever = lever_of(t, body, at);
    const v4 velocity = velocity_of_point(t, body, lever);
    for (int i = body; i >= 0; i = (int)t->joints[i].parent) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        const int n = (int)j->size;
        const v4 own = velocity - b->nu_v - cross(b->nu_w, lever);
        Twist moved[MOST], faster[MOST];
        for (int start = 0; start < 2; ++start) {
            motions_of(t, j, b, start ? BY_START : BY_UNKNOWN, moved);
            motions_of(t, j, b, RATE, faster);
            if (n > 1 && start) twists_of(b, t->wides[(int)j->wide].Sq, n, faster);
            const double per = n > 1 ? 1.0 : j->prescribed > 0 ? (start ? -1 : 1) / t->h : !start;
            for (int l = 0; l < n; ++l) {
                const Twist x = moved[l], w = faster[l];
                const v4 ds = x.v + cross(x.w, lever),
                         drate = cross(b->nu_w, ds) + cross(x.w, own) +
                                 per * (w.v + cross(w.w, lever)),
                         change = by * j->ratio * damper_change(c, s, rate, ds, drate);
                for (int k = 0; k < 3; ++k)
                    (start ? q : z)[t->nv * k + (int)j->lead + l] += change[k];
            }
        }
        lever += b->p;
    }
}

static void changes_of_damper(const Tree *t, const Bond *c, double *z, double *q)
{
    memset(z, 0, sizeof(double) * 3 * t->nv);
    memset(q, 0, sizeof(double) * 3 * t->nv);
    change_by_path(t, c, (int)c->a, c->at_a, -1.0, z, q);
    change_by_path(t, c, (int)c->b, c->at_b, 1.0, z, q);
}

/* Adds to F_z and F_q (external_wrenches.c) what changes of a damper's F do. */
static void add_slopes_of_damper(const Tree *t, const Bond *c, int n, const int *place,
                                 double *F_z, double *F_q)
{
    const int nv = t->nv;
    double on[3 * nv], z[3 * nv], q[3 * nv];
    changes_of_damper(t, c, z, q);
    bond_rows(t, c, UNITS, 1.0, UNIT, on);
    for (int v = 0; v < nv; ++v)
        for (int w = 0; w < nv && place[v] >= 0; ++w)
            for (int k = 0; k < 3 && place[w] >= 0; ++k) {
                const double by = t->left * t->h * on[nv * k + v];
                F_z[n * place[v] + place[w]] += by * z[nv * k + w];
                F_q[n * place[v] + place[w]] += by * q[nv * k + w];
            }
}
