/* First derivatives of the step, LANES columns side by side: all have the factors of Newton's
 * equation, and only bodies between a column's own joint and the root pass wrenches inward. */

typedef struct {
    int body, coordinate, kind;
    const Slope *slopes;
} Source;
enum { BY_Q, BY_RHO, BY_PRESCRIBED, BY_MULTIPLIER, BY_SHARED, BY_NUMBERS, BY_STEP };

/* What a column's own joint gives: `right`, already solved with the pivot, and wrenches of its
 * body. */
static void begin(const Tree *t, Source s, int lane, vn (*c)[9], vn *right)
{
    const Joint *j = t->joints + s.body;
    const int n = (int)j->size, v = (int)j->v, m = s.coordinate;
    const Row *o = t->rows + v;
    const Wide *w = t->wides + (int)j->wide;
    double given[MOST];
    for (int l = 0; l < n; ++l)
        given[l] = s.kind == BY_RHO      ? l == m && v < t->nv
                   : s.kind == BY_SHARED ? j->ratio * o->pivot
                   : s.kind == BY_Q      ? (n > 1 ? w->source[n * l + m] : j->ratio * o->source)
                                         : 0.0;
    if (n > 1) solve_wide(w, n, given, given);
    else if (!j->prescribed) given[0] /= o->pivot;
    for (int l = 0; l < n; ++l) right[v + l][lane] += given[l];
    if (j->parent < 0 || s.kind == BY_RHO || j->prescribed == IDLE) return;
    const double by = j->prescribed > 0 ? (s.kind == BY_Q ? -1 : 1) / t->h : s.kind == BY_SHARED;
    const Body *b = t->bodies + s.body;
    v4 y[3];
    for (int i = 0; i < parts(t->plane); ++i)
        y[i] = (s.kind == BY_Q) * o[m].column_q[i] + by * o[m].column[i];
    move_in(b, y, t->plane);
    add_to_lane(t, c[(int)j->parent], lane, j->ratio, y);
}

/* Its own motion, and what it changes in the rows of the state after the step. */
static void own_motion(const Tree *t, Source s, int lane, vn *x, vn (*after)[2])
{
    const Joint *j = t->joints + s.body;
    const int n = (int)j->size, v = (int)j->v, m = s.coordinate;
    const Row *o = t->rows + v;
    const Wide *w = t->wides + (int)j->wide;
    if (j->prescribed > 0) {
        const double by = (s.kind == BY_Q ? -1 : 1) / t->h;
        if (j->prescribed != IDLE) {
            add_to_lane(t, x, lane, j->ratio * (s.kind == BY_Q), o->phi_q);
            add_to_lane(t, x, lane, j->ratio * by, o->phi);
        }
        after[0][0][lane] = s.kind == BY_PRESCRIBED;
        after[0][1][lane] = by;
    } else if (s.kind == BY_Q) {
        add_to_lane(t, x, lane, j->ratio, o[m].phi_q);
        for (int l = 0; l < n; ++l) {
            after[l][0][lane] += n > 1 ? w->Eq[n * l + m] : v < t->nv;
            after[l][1][lane] += n > 1 ? w->source1[n * l + m] : j->ratio * o->source1;
        }
    } else if (s.kind == BY_SHARED) {
        add_to_lane(t, x, lane, j->ratio, o->phi);
        after[0][0][lane] += v < t->nv ? t->h : 0.0;
        after[0][1][lane] += j->ratio * o->slope1;
    }
}

/* `begin` for the joint of a source and those that follow it, whose states it changes; the last of
 * them. */
static int begin_all(const Tree *t, Source s, int lane, vn (*c)[9], vn *right,
                     unsigned char *state)
{
    int last = s.body;
    begin(t, s, lane, c, right);
    state[s.body] |= HAS_WRENCHES | MOVES | OF_JOINT;
    for (int i = 0; t->all > t->nv && i < t->n; ++i) {
        if (i == s.body || t->joints[i].lead != t->joints[s.body].lead) continue;
        begin(t, (Source){i, s.coordinate, s.kind, 0}, lane, c, right);
        state[i] |= HAS_WRENCHES | MOVES | OF_JOINT;
        if (i > last) last = i;
    }
    return last;
}

/* What changes of the start, and multipliers, give the rows of the joints that constraints hold:
 * into `right`, solved with their pivots. The last of these joints, -1 without any. */
static int by_constraints(const Tree *t, const Source *s, int count, vn *right,
                          unsigned char *state)
{
    vn given[t->nv];
    int some = 0, last = -1;
    for (int lane = 0; lane < count && t->m; ++lane) {
        if (s[lane].kind != BY_Q && s[lane].kind != BY_MULTIPLIER) continue;
        if (!some++) memset(given, 0, sizeof given);
        if (s[lane].kind == BY_MULTIPLIER) {
            const double *g = t->G0 + (size_t)t->nv * s[lane].coordinate;
            for (int v = 0; v < t->nv; ++v) given[v][lane] = g[v];
            continue;
        }
        for (int i = 0; i < t->n; ++i)
            if (t->joints[i].lead == t->joints[s[lane].body].lead)
                bend_rows(t, i, s[lane].coordinate, (double *)given + lane);
    }
    for (int i = 0; i < t->n && some; ++i) {
        const Joint *j = t->joints + i;
        const int v = (int)j->v, n = (int)j->size;
        if (!j->held_by || j->prescribed > 0 || j->prescribed == FOLLOWS) continue;
        if (n > 1)
            lu_solve_lanes(t->wides[(int)j->wide].pivot, n, t->wides[(int)j->wide].order,
                           given + v);
        else if (!j->prescribed) given[v] /= t->rows[v].pivot;
        for (int l = 0; l < n; ++l) right[v + l] -= given[v + l];
        state[i] |= HAS_WRENCHES | MOVES;
        last = i;
    }
    return last;
}

/* Columns `first`, first + 1, ... of `count` sources, into the rows of AB and dz of length nw. */
INLINE void columns_in(const Tree *t, const Source *s, int count, int first, int nw, double *ab,
                       double *dz, int plane)
{
    vn(*c)[9] = (vn(*)[9])t->lanes, (*x)[9] = c + t->n, *right = (vn *)(x + t->n);
    const Jumps jumps = jumps_at(t, right + t->all);
    unsigned char *state = (unsigned char *)(jumps.weight + t->n);
    for (int i = 0; i < t->n; ++i)
        for (int k = 0; k < components(plane); ++k) c[i][k] = (vn){0};
    memset(right, 0, sizeof(vn) * t->all);
    memset(state, 0, t->n);
    begin_shared(t, count, first, nw, ab, dz);
    int last = 0;
    for (int l = 0; l < count; ++l) {
        if (s[l].kind >= BY_NUMBERS) {
            const int body =
                s[l].kind == BY_STEP
                    ? t->n - 1
                    : begin_parameter(t, s[l].slopes, s[l].coordinate, l, c, right, state, &jumps);
            if (s[l].kind == BY_STEP) begin_step(t, c, right, state, &jumps);
            if (body > last) last = body;
            continue;
        }
        if (s[l].kind != BY_MULTIPLIER) {
            const int own = begin_all(t, s[l], l, c, right, state);
            if (own > last) last = own;
        }
    }
    const int held = by_constraints(t, s, count, right, state);
    if (held > last) last = held;
    for (int i = last; i >= 0; --i) {
        if (state[i] & HAS_WEIGHT) pass_weight(t, i, c, right, state, &jumps);
        if (!(state[i] & HAS_WRENCHES) || t->joints[i].prescribed == IDLE) continue;
        const Joint *j = t->joints + i;
        const int n = plane ? 1 : (int)j->size;
        const Row *o = t->rows + (int)j->v;
        vn m[9];
        for (int k = 0; k < components(plane); ++k) m[k] = c[i][k];
        for (int l = 0; l < n && !j->prescribed; ++l) {
            const vn by = right[(int)j->v + l] += dot_lanes(o[l].left, c[i], plane);
            add_lanes(-by, o[l].column, m, plane);
        }
        if (j->parent >= 0) {
            lanes_in(t->bodies + i, m, c[(int)j->parent], plane);
            state[(int)j->parent] |= HAS_WRENCHES | MOVES;
        }
    }
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        const int n = plane ? 1 : (int)j->size, v = (int)j->v, lead = (int)j->lead,
                  parent = (int)j->parent;
        const Row *o = t->rows + v;
        const Wide *w = t->wides + (int)j->wide;
        vn after[MOST][2], change[MOST];
        for (int l = 0; l < n; ++l) after[l][0] = after[l][1] = change[l] = (vn){0};
        const int carried = parent >= 0 && state[parent] & MOVES && j->prescribed != IDLE;
        if (carried) state[i] |= MOVES;
        if (state[i] & MOVES) {
            if (carried) lanes_out(t->bodies + i, x[parent], x[i], plane);
            else memset(x[i], 0, sizeof x[i]);
            if (!j->prescribed) {
                for (int l = 0; l < n; ++l)
                    change[l] = -(right[v + l] + dot_lanes(o[l].row, x[i], plane));
                for (int l = 0; l < n; ++l) after[l][1] = dot_lanes(o[l].row1, x[i], plane);
                for (int l = 0; l < n; ++l) {
                    if (state[i] & HAS_WRENCHES) after[l][1] += dot_lanes(o[l].left1, c[i], plane);
                    for (int m = 0; m < n; ++m) {
                        after[l][0] += (n > 1 ? w->Ez[n * l + m] : t->h) * change[m];
                        after[l][1] += (n > 1 ? w->slope1[n * l + m] : o->slope1) * change[m];
                    }
                    add_lanes(change[l], o[l].phi, x[i], plane);
                }
            }
            if (j->prescribed < 0) {
                change[0] =
                    -(right[v] + dot_lanes(o->left, c[i], plane) + dot_lanes(o->row, x[i], plane));
                after[0][1] = dot_lanes(o->left1, c[i], plane) + dot_lanes(o->row1, x[i], plane);
            }
            if (state[i] & OF_NUMBERS) {
                for (int k = 0; k < components(plane); ++k) x[i][k] += jumps.own[i][k];
                for (int l = 0; l < n; ++l)
                    for (int k = 0; k < 2; ++k) after[l][k] += jumps.extra[v + l][k];
            }
            if (state[i] & OF_JOINT)
                for (int l = 0; l < count; ++l)
                    if (t->joints[s[l].body].lead == j->lead)
                        own_motion(t, (Source){i, s[l].coordinate, s[l].kind, 0}, l, x[i], after);
        }
        if (j->prescribed < 0) {
            add(ab + (size_t)nw * lead + first, count, after[0][0]);
            add(ab + (size_t)nw * (t->nv + lead) + first, count, j->ratio * after[0][1]);
            add(dz + (size_t)nw * lead + first, count, j->ratio * change[0]);
            continue;
        }
        for (int l = 0; l < n && v < t->nv; ++l) {
            put(ab + (size_t)nw * (v + l) + first, count, after[l][0]);
            put(ab + (size_t)nw * (t->nv + v + l) + first, count, after[l][1]);
            if (!j->prescribed) put(dz + (size_t)nw * (v + l) + first, count, change[l]);
        }
    }
}

static void columns(const Tree *t, const Source *s, int count, int first, int nw, double *ab,
                    double *dz)
{
    if (t->plane) columns_in(t, s, count, first, nw, ab, dz, 1);
    else columns_in(t, s, count, first, nw, ab, dz, 0);
}

/* Columns from..end - 1 of the variables (q, rho, forces, prescribed coordinates) but forces. */
static void columns_by(const Tree *t, const int *body_of, int from, int end, int nw, double *ab,
                       double *dz)
{
    const int nv = t->nv, prescribed = 2 * nv + t->nu - t->nz;
    for (int first = from; first < end; first += LANES) {
        Source s[LANES];
        const int count = end - first < LANES ? end - first : LANES;
        for (int l = 0; l < count; ++l) {
            const int at = first + l, kind = at < nv ? BY_Q : at < 2 * nv ? BY_RHO : BY_PRESCRIBED;
            const int v = kind == BY_PRESCRIBED ? at - prescribed : at % nv;
            s[l] = (Source){body_of[v], v - (int)t->joints[body_of[v]].v, kind, 0};
        }
        columns(t, s, count, first, nw, ab, dz);
    }
}

/* y (n) += s x. */
INLINE void add_row(int n, double s, const double *x, double *y)
{
    for (int i = 0; i < n; ++i) y[i] += s * x[i];
}

/* A force acts like `left h` of a momentum before the step, and (1 - left) h of one after it. */
static void columns_by_forces(const Tree *t, int nw, double *ab, double *dz)
{
    const int nv = t->nv, nu = t->nu;
    const double before = t->left * t->h, after = (1 - t->left) * t->h;
    int on[nu + 1];
    for (int i = 0; i < nu; ++i) on[i] = nv + (t->actuated[i] < 0.0 ? 0 : (int)t->actuated[i]);
    for (int row = 0; row < 2 * nv + t->nz; ++row) {
        double *all = row < 2 * nv ? ab + (size_t)nw * row : dz + (size_t)nw * (row - 2 * nv);
        for (int i = 0; i < nu; ++i) all[2 * nv + i] = before * all[on[i]];
    }
    for (int i = 0; i < nu; ++i)
        if (t->actuated[i] >= 0.0) ab[(size_t)nw * on[i] + 2 * nv + i] += after;
}

/* A wrench acts on several coordinates. */
static void columns_by_pushes(const Tree *t, int nw, double *ab, double *dz)
{
    const int nv = t->nv;
    for (int i = 0; i < t->pushes; ++i) {
        const int at = 2 * nv + (int)t->push[i].input;
        double *f = t->pushed;
        memset(f, 0, sizeof(double) * nv);
        add_push(t, t->push + i, 1.0, f);
        for (int row = 0; row < 2 * nv + t->nz; ++row) {
            double *all = row < 2 * nv ? ab + (size_t)nw * row : dz + (size_t)nw * (row - 2 * nv),
                   total = 0.0;
            for (int v = 0; v < t->nz; ++v) total += f[v] * all[nv + v];
            all[at] = t->left * t->h * total;
        }
        for (int v = 0; v < t->nz; ++v)
            ab[(size_t)nw * (nv + v) + at] += (1 - t->left) * t->h * f[v];
    }
}
