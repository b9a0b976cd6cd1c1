/* What a change of a model's numbers gives: first derivatives of a step by its parameters, with
 * the same factors as those by the state. a[SLOPES] lists derivatives of the joints' numbers by
 * the parameters as triples (parameter, PLACES * joint + place, value), parameters in their order,
 * after them (-1, ...). */

enum {
    BY_MASS,
    BY_FIRST,
    BY_INERTIA = BY_FIRST + 3,
    BY_POSITION = BY_INERTIA + 6,
    BY_STIFFNESS = BY_POSITION + 3,
    BY_PULL,
    BY_DAMPING,
    PLACES
};
enum {
    HAS_WRENCHES = 1,
    MOVES = 2,
    OF_JOINT = 4,
    OF_NUMBERS = 8,
    HAS_WEIGHT = 16
}; /* states of a body in a column */

typedef struct {
    double parameter, place, value;
} Slope;

/* Motions and parts of the rows of the state after the step that bodies with OF_NUMBERS have of
 * their own; changes of the weights carried. */
typedef struct {
    vn (*own)[9], (*extra)[2], *weight;
} Jumps;

static Jumps jumps_at(const Tree *t, vn *room)
{
    Jumps s = {.own = (vn(*)[9])room};
    s.extra = (vn(*)[2])(s.own + t->n);
    s.weight = (vn *)(s.extra + t->all);
    return s;
}

/* Wrenches of the body alone, by place: of momentum with its twist, of gravity. */
static void own_wrench(const Tree *t, const Body *b, int place, v4 *y)
{
    v4 torque = vec(0, 0, 0), moment = torque, force = torque;
    static const int rows[6] = {0, 1, 2, 0, 0, 1}, columns[6] = {0, 1, 2, 1, 2, 2};
    if (place == BY_MASS) force = b->xi_v;
    else if (place < BY_INERTIA) {
        const v4 c = b->column[place - BY_FIRST];
        torque = cross(c, t->gravity);
        moment = cross(c, b->xi_v);
        force = -cross(c, b->xi_w);
    } else {
        const int row = rows[place - BY_INERTIA], column = columns[place - BY_INERTIA];
        moment = dot(b->column[column], b->xi_w) * b->column[row];
        if (row != column) moment += dot(b->column[row], b->xi_w) * b->column[column];
    }
    pack(torque, moment, force, y, t->plane);
}

INLINE void add_to_lane_in(vn *to, int lane, double by, const v4 *x, int plane)
{
    for (int i = 0; i < components(plane); ++i) to[i][lane] += by * component(x, i, plane);
}

static void add_to_lane(const Tree *t, vn *to, int lane, double by, const v4 *x)
{
    if (t->plane) add_to_lane_in(to, lane, by, x, 1);
    else add_to_lane_in(to, lane, by, x, 0);
}

/* The place of a joint in its parent: the body's velocity, the wrenches of the parent. */
static void by_position(const Tree *t, int body, int axis, int lane, double by, vn (*c)[9],
                        vn *right, const Jumps *s)
{
    const Joint *j = t->joints + body;
    if (j->parent < 0) return;
    const Body *b = t->bodies + body, *parent = t->bodies + (int)j->parent;
    const Row *o = t->rows + (int)j->v;
    v4 phi[3], column[3], y[3];
    const v4 zero = vec(0, 0, 0), moved = parent->column[axis];
    pack(zero, zero, -cross(moved, parent->xi_w), phi, t->plane);
    times_columns(b->H, phi, column, t->plane);
    pack(j->weight * cross(moved, t->gravity), cross(moved, b->bf), zero, y, t->plane);
    add_in(b, column, y, t->plane);
    add_to_lane(t, c[(int)j->parent], lane, by, y);
    add_to_lane(t, s->own[body], lane, by, phi);
    for (int l = 0; l < (int)j->size && j->prescribed <= 0; ++l) {
        right[(int)j->v + l][lane] += by * inner(o[l].row, phi, t->plane);
        s->extra[(int)j->v + l][1][lane] += by * inner(o[l].row1, phi, t->plane);
    }
}

/* What right-hand sides of a joint with one coordinate are divided by. */
INLINE double divisor_of(const Tree *t, const Joint *j)
{
    return j->prescribed ? 1.0 : t->rows[(int)j->v].pivot;
}

/* Springs and dampers on a coordinate. */
static void by_element(const Tree *t, int body, int place, int lane, double by, vn *right,
                       const Jumps *s)
{
    const Joint *j = t->joints + body;
    const int v = (int)j->v;
    const double rate = t->bodies[body].rate, q = t->q[(int)j->q] + t->k * rate;
    if (j->prescribed > 0) return;
    const double before = place == BY_DAMPING ? -t->left * t->h * rate
                          : place == BY_PULL  ? t->k
                                              : -t->k * q;
    const double after = place == BY_DAMPING ? -(1 - t->left) * t->h * rate : before;
    right[v][lane] += by * before / divisor_of(t, j);
    s->extra[v][1][lane] += by * after;
}

/* Marks a body as one with jumps. */
static void jump(const Tree *t, int body, unsigned char *state, const Jumps *s)
{
    const Joint *j = t->joints + body;
    if (!(state[body] & OF_NUMBERS)) {
        memset(s->own[body], 0, sizeof *s->own);
        memset(s->extra[(int)j->v], 0, sizeof *s->extra * (int)j->size);
    }
    state[body] |= HAS_WRENCHES | MOVES | OF_NUMBERS;
}

static void add_weights(int body, vn by, unsigned char *state, const Jumps *s)
{
    if (state[body] & HAS_WEIGHT) s->weight[body] += by;
    else s->weight[body] = by;
    state[body] |= HAS_WEIGHT;
}

/* Into a lane, the change by parameter `number`, whose slopes begin at `slope`; the last body that
 * it changes. */
static int begin_parameter(const Tree *t, const Slope *slope, int number, int lane, vn (*c)[9],
                           vn *right, unsigned char *state, const Jumps *s)
{
    int last = 0;
    for (; (int)slope->parameter == number; ++slope) {
        const int body = (int)slope->place / PLACES, place = (int)slope->place % PLACES;
        jump(t, body, state, s);
        if (place >= BY_STIFFNESS) by_element(t, body, place, lane, slope->value, right, s);
        else if (place >= BY_POSITION)
            by_position(t, body, place - BY_POSITION, lane, slope->value, c, right, s);
        else {
            v4 y[3];
            own_wrench(t, t->bodies + body, place, y);
            add_to_lane(t, c[body], lane, slope->value, y);
            if (place == BY_MASS) {
                vn by = {0};
                by[lane] = slope->value;
                add_weights(body, by, state, s);
            }
        }
        if (body > last) last = body;
    }
    return last;
}

/* What the change of a weight does to a body's rows, and to the torque of gravity on its parent */
static void pass_weight(const Tree *t, int i, vn (*c)[9], vn *right, unsigned char *state,
                        const Jumps *s)
{
    const Joint *j = t->joints + i;
    const Body *b = t->bodies + i;
    const Wide *w = t->wides + (int)j->wide;
    const int n = (int)j->size, v = (int)j->v, parent = (int)j->parent;
    const v4 gravity = inward(b, t->gravity);
    double before[MOST] = {0}, after[MOST] = {0};
    jump(t, i, state, s);
    for (int l = 0; l < n && n > 1; ++l) {
        before[l] = t->h * dot(twist_of(w->Z0, n, l).v, gravity);
        after[l] = t->h * dot(twist_of(w->Z1, n, l).v, gravity);
    }
    if (n > 1) solve_wide(w, n, before, before);
    else if (j->kind == PRISMATIC && j->prescribed <= 0) {
        after[0] = t->k * gravity[0];
        before[0] = after[0] / divisor_of(t, j);
    }
    for (int l = 0; l < n; ++l) {
        right[v + l] += before[l] * s->weight[i];
        s->extra[v + l][1] += after[l] * s->weight[i];
    }
    if (parent < 0) return;
    const v4 zero = vec(0, 0, 0);
    v4 torque[3];
    pack(cross(b->p, t->gravity), zero, zero, torque, t->plane);
    add_weights(parent, s->weight[i], state, s);
    for (int k = 0; k < components(t->plane); ++k)
        c[parent][k] += component(torque, k, t->plane) * s->weight[i];
    state[parent] |= HAS_WRENCHES | MOVES;
}

/* A body's motion by the step h: half the rate at the middle; a prescribed one is slower. */
static void scalar_by_step(const Tree *t, int i, v4 *phi, v4 *column, vn *right, const Jumps *s)
{
    const Joint *j = t->joints + i;
    const int v = (int)j->v;
    const Row *o = t->rows + v;
    const double rate = t->bodies[i].rate, half = 0.5 * rate, slower = -rate / t->h,
                 force = t->force[v] - j->damping * rate;
    for (int c = 0; c < parts(t->plane); ++c) {
        phi[c] =
            j->prescribed > 0 ? slower * (o->phi[c] - t->k * o->phi_q[c]) : half * o->phi_q[c];
        column[c] = j->prescribed > 0 ? slower * (o->column[c] - t->k * o->column_q[c])
                                      : half * o->column_q[c];
    }
    if (j->prescribed > 0) {
        s->extra[v][1][0] += slower;
        return;
    }
    right[v][0] += (half * o->source + 0.5 * t->low[v] + t->left * force) / divisor_of(t, j);
    s->extra[v][0][0] += v < t->nv ? rate : 0.0;
    s->extra[v][1][0] += half * o->source1 + 0.5 * t->low[v] + (1 - t->left) * force;
}

static void wide_by_step(const Tree *t, int i, v4 *phi, v4 *column, vn *right, const Jumps *s)
{
    const Joint *j = t->joints + i;
    const Body *b = t->bodies + i;
    const Wide *w = t->wides + (int)j->wide;
    const int v = (int)j->v, n = (int)j->size;
    const Row *o = t->rows + v;
    double mu[6], wrench[6], Zh[6], Sh[6], before[MOST], after[MOST], end[MOST];
    wrenches_of(w, mu, wrench);
    t->functions[(int)j->kind - MANIFOLD].growth(t->q + (int)j->q, t->at + v, &t->h, mu, wrench,
                                                 Zh, Sh, before, after, end);
    Twist D, S, Z0[MOST], Z1[MOST];
    twists_of(b, Zh, 1, &D);
    twists_of(b, Sh, 1, &S);
    twists_of(b, w->Z0, n, Z0);
    twists_of(b, w->Z1, n, Z1);
    wide_column(t, j, b, D, S, phi, column);
    for (int l = 0; l < n; ++l) {
        before[l] -= t->h * power(bent_by(b, Z0[l]), S);
        after[l] -= t->h * power(bent_by(b, Z1[l]), S);
    }
    solve_wide(w, n, before, before);
    for (int l = 0; l < n; ++l) {
        right[v + l][0] += before[l] + inner(o[l].row, phi, 0);
        s->extra[v + l][0][0] += end[l];
        s->extra[v + l][1][0] += after[l] + inner(o[l].row1, phi, 0);
    }
}

/* The change by the step h, into lane 0. */
static void begin_step(const Tree *t, vn (*c)[9], vn *right, unsigned char *state, const Jumps *s)
{
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        v4 phi[3], column[3], y[3] = {vec(0, 0, 0), vec(0, 0, 0), vec(0, 0, 0)};
        jump(t, i, state, s);
        if (j->kind < MANIFOLD) scalar_by_step(t, i, phi, column, right, s);
        else wide_by_step(t, i, phi, column, right, s);
        add_to_lane(t, s->own[i], 0, 1.0, phi);
        if (j->parent < 0) continue;
        add_in(t->bodies + i, column, y, t->plane);
        add_to_lane(t, c[(int)j->parent], 0, 1.0, y);
    }
}
