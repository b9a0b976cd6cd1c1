/* Newton's equation r + r_z dz = 0 by the Riccati recursion from the leaves: on every body
 *
 *     (dam, db) = H (turn, dxi) + c,
 *
 * turn its rotation in its frame. With H of a body, its joint's column and row, and F from the
 * motion of the parent to that of the body,
 *
 *     pivot = left . (H phi + ...),   dz = -(row . x + right) / pivot,
 *     G_parent += F^T (H - column row / pivot) F. */

/* A number that is written into a vector in memory would hold up the reading of the vector. */
static const v4 UNITS[3] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};

/* H of a body alone; those of its children are added to it. */
INLINE void own_inertia(const Joint *j, Body *b)
{
    const v4 zero = vec(0, 0, 0), c = b->first;
    const v4 lever[3] = {vec(0, -c[2], c[1]), vec(c[2], 0, -c[0]), vec(-c[1], c[0], 0)};
    const v4 J[3] = {outward(b, j->inertia[0]), outward(b, j->inertia[1]),
                     outward(b, j->inertia[2])};
    for (int i = 0; i < 3; ++i) {
        b->H[i][0] = b->H[i][1] = b->H[i][2] = zero;
        b->H[3 + i][0] = b->H[6 + i][0] = zero;
        b->H[3 + i][1] = J[0][i] * b->column[0] + J[1][i] * b->column[1] + J[2][i] * b->column[2];
        b->H[3 + i][2] = lever[i];
        b->H[6 + i][1] = -lever[i];
        b->H[6 + i][2] = j->mass * UNITS[i];
    }
    b->carried = c;
}

/* The torque of gravity g on first moments c turns by g x turn: c x (g x turn) = g (c . turn) - (c
 * . g) turn. */
INLINE void add_weight(v4 g, Body *b)
{
    const double along = dot(b->carried, g);
    for (int i = 0; i < 3; ++i) b->H[i][0] += g[i] * b->carried - along * UNITS[i];
}

/* H of a body, which has begun with its own. */
INLINE void begin_inertia(const Joint *j, Body *b)
{
    if (!b->begun) own_inertia(j, b);
    b->begun = 1.0;
}

/* A row of H without what the joint of n coordinates takes up, by motions of the parent. */
INLINE void free_row(const Body *b, const Row *o, int n, int i, int part, v4 *h)
{
    for (int c = part; c < 3; ++c) h[c] = b->H[i][c];
    for (int l = 0; l < n; ++l) {
        const double f = o[l].column[i / 3][i % 3];
        for (int c = part; c < 3; ++c) h[c] -= f * o[l].row[c];
    }
    h[1] += cross(b->p, h[2]);
}

/* Adds F^T (H - column row) F to the parent's H; parts (am, turn), (bm, dw), (bf, dv) of both from
 * `part` on. */
INLINE void pass_inward(const Joint *j, const Body *b, Row *o, int n, Body *parent, int part)
{
    const v4 p = b->p;
    v4 f[3][3], h[3];
    for (int l = 0; l < n; ++l)
        for (int c = 0; c < 3; ++c) {
            o[l].column_in[c] =
                c == 1 ? o[l].column[1] + cross(p, o[l].column[2]) : o[l].column[c];
            o[l].row_in[c] = c == 1 ? o[l].row[1] + cross(p, o[l].row[2]) : o[l].row[c];
        }
    for (int i = 0; i < 3; ++i) {
        free_row(b, o, n, 6 + i, part, f[i]);
        for (int c = part; c < 3; ++c) parent->H[6 + i][c] += f[i][c];
    }
    for (int i = 0; i < 3; ++i) {
        const int y = (i + 1) % 3, z = (i + 2) % 3;
        free_row(b, o, n, 3 + i, part, h);
        for (int c = part; c < 3; ++c)
            parent->H[3 + i][c] += h[c] + p[y] * f[z][c] - p[z] * f[y][c];
    }
    for (int i = 0; i < 3 && !part; ++i) {
        free_row(b, o, n, i, part, h);
        for (int c = part; c < 3; ++c) parent->H[i][c] += h[c];
    }
    parent->carried += j->weight * p;
}

/* phi, left, column and row of a joint with one coordinate; with `slopes` also those of the
 * momentum after the step and by q. */
INLINE void scalar_row(const Tree *t, const Joint *j, const Body *b, int slopes)
{
    Row *o = t->rows + (int)j->v;
    const double k = t->k;
    const v4 zero = vec(0, 0, 0), S = b->column[2];
    const int turns = j->kind == REVOLUTE;
    v4 n_w, n_v, e_w, e_v, e_a, extra, bend = zero;
    if (turns) {
        n_w = cross(b->nu_w, S);
        n_v = cross(b->nu_v, S);
        e_a = cross(S, b->am);
        e_w = cross(S, b->bm);
        e_v = cross(S, b->bf);
        extra = zero;
        bend = S;
    } else {
        n_w = zero;
        n_v = cross(b->nu_w, S);
        e_a = j->weight * cross(S, t->gravity);
        e_w = cross(S, b->bf);
        e_v = zero;
        extra = k * e_a;
    }
    const v4 unit_w = turns ? S : zero, unit_v = turns ? zero : S;
    o->phi[0] = k * bend;
    o->phi[1] = k * n_w + unit_w;
    o->phi[2] = k * n_v + unit_v;
    o->left[0] = k * bend;
    o->left[1] = k * n_w - unit_w;
    o->left[2] = k * n_v - unit_v;
    times_columns(b->H, o->phi, o->column);
    o->column[0] += k * e_a;
    o->column[1] += k * e_w;
    o->column[2] += k * e_v;
    times_rows(o->left, b->H, o->row);
    o->row[0] += extra;
    o->row[1] += k * e_w;
    o->row[2] += k * e_v;
    o->pivot = dot9(o->row, o->phi) - k * k * j->stiffness - t->left * t->h * j->damping;
    if (!slopes) return;
    o->left1[0] = o->left[0];
    o->left1[1] = k * n_w + unit_w;
    o->left1[2] = k * n_v + unit_v;
    times_rows(o->left1, b->H, o->row1);
    o->row1[0] += extra;
    o->row1[1] += k * e_w;
    o->row1[2] += k * e_v;
    o->slope1 = dot9(o->row1, o->phi) - k * k * j->stiffness - (1 - t->left) * t->h * j->damping;
    o->phi_q[0] = bend;
    o->phi_q[1] = n_w;
    o->phi_q[2] = n_v;
    times_columns(b->H, o->phi_q, o->column_q);
    o->column_q[0] += e_a;
    o->column_q[1] += e_w;
    o->column_q[2] += e_v;
    o->source = dot9(o->row, o->phi_q) - k * j->stiffness;
    o->source1 = dot9(o->row1, o->phi_q) - k * j->stiffness;
}

/* The same of the mass matrix in the place of r_z, as if nothing moved and gravity did not turn */
INLINE void mass_row(const Tree *t, const Joint *j, const Body *b)
{
    Row *o = t->rows + (int)j->v;
    const v4 zero = vec(0, 0, 0), S = b->column[2];
    const int part = j->kind == REVOLUTE ? 1 : 2;
    v4 all[9];
    for (int i = 3; i < 9; ++i) all[i] = b->H[i][part] * S;
    o->phi[0] = o->left[0] = o->column[0] = o->row[0] = zero;
    for (int c = 1; c < 3; ++c) {
        o->phi[c] = c == part ? S : zero;
        o->left[c] = -o->phi[c];
        o->column[c] = sums(all[3 * c], all[3 * c + 1], all[3 * c + 2]);
        o->row[c] = -o->column[c];
    }
    o->pivot = -dot(o->column[part], S) - t->k * t->k * j->stiffness - t->left * t->h * j->damping;
}

static void wide_mass_row(const Tree *t, const Joint *j, const Body *b)
{
    Row *o = t->rows + (int)j->v;
    wide_row(t, j, b, 0, 1);
    for (int l = 0; l < (int)j->size; ++l)
        o[l].phi[0] = o[l].left[0] = o[l].column[0] = o[l].row[0] = vec(0, 0, 0);
}

/* `row` and `left` are divided by the pivot, and its part of H goes to the parent. Returns 1 for a
 * pivot that is zero or not finite. */
INLINE int eliminate(const Tree *t, const Joint *j, Body *b, int part)
{
    Row *o = t->rows + (int)j->v;
    const int n = (int)j->size;
    if (n == 1 && !j->prescribed) {
        if (!(fabs(o->pivot) > 0.0 && fabs(o->pivot) < INFINITY)) return 1;
        const double by = 1.0 / o->pivot;
        for (int c = 0; c < 3; ++c) o->row[c] *= by, o->left[c] *= by;
    }
    if (n > 1 && factor_wide(t, j)) return 1;
    if (j->parent < 0) return 0;
    Body *parent = t->bodies + (int)j->parent;
    begin_inertia(t->joints + (int)j->parent, parent);
    if (j->prescribed) pass_inward(j, b, o, 0, parent, part);
    else if (n == 1) pass_inward(j, b, o, 1, parent, part);
    else pass_inward(j, b, o, n, parent, part);
    return 0;
}

/* Factors of r_z where the last residual was taken, or of the mass matrix; 1 if it is singular. */
INLINE int factor_with(const Tree *t, int slopes, int mass)
{
    for (int i = 0; i < t->n; ++i) t->bodies[i].begun = 0.0;
    for (int i = t->n - 1; i >= 0; --i) {
        const Joint *j = t->joints + i;
        Body *b = t->bodies + i;
        if (j->prescribed == IDLE) continue;
        begin_inertia(j, b);
        if (!mass) add_weight(t->gravity, b);
        if (j->kind >= MANIFOLD) mass ? wide_mass_row(t, j, b) : wide_row(t, j, b, slopes, 0);
        else mass ? mass_row(t, j, b) : scalar_row(t, j, b, slopes);
        if (eliminate(t, j, b, mass)) return 1;
    }
    return 0;
}

/* What a joint that shares its coordinate gives the row of that one, as itself moves by `by`. */
INLINE void meet(const Tree *t, const Joint *j, const Row *o, double by, Body *b)
{
    t->met[(int)j->lead] += j->ratio * (dot9(o->row, b->x) + dot9(o->left, b->c) + by * o->pivot);
    for (int c = 0; c < 3; ++c) b->x[c] += by * o->phi[c];
}

/* The wrenches of its parent, as it moves so. */
INLINE void pass_shared(const Body *b, const Row *o, double by, v4 *c)
{
    const v4 moved[3] = {by * o->column[0], by * o->column[1], by * o->column[2]};
    add_in(b, moved, c);
}

/* dz = -r_z^{-1} r, but for coordinates that joints share: dz has their changes. */
static void solve_tree(const Tree *t, const double *r, double *dz)
{
    const v4 none[3] = {vec(0, 0, 0), vec(0, 0, 0), vec(0, 0, 0)};
    for (int i = 0; i < t->n; ++i) memcpy(t->bodies[i].c, none, sizeof none);
    for (int i = t->n - 1; i >= 0; --i) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        const int v = (int)j->v, n = j->prescribed ? 0 : (int)j->size;
        if (j->prescribed == IDLE) continue;
        const Row *o = t->rows + v;
        if (n == 1) dz[v] = r[v] / o->pivot;
        else if (n > 1) solve_wide(t->wides + (int)j->wide, n, r + v, dz + v);
        for (int l = 0; l < n; ++l) dz[v + l] += dot9(o[l].left, b->c);
        if (j->parent < 0) continue;
        v4 *c = t->bodies[(int)j->parent].c;
        add_in(b, b->c, c);
        if (j->prescribed < 0) pass_shared(b, o, j->ratio * dz[(int)j->lead], c);
        for (int l = 0; l < n; ++l)
            for (int k = 0; k < 3; ++k) c[k] -= dz[v + l] * o[l].column_in[k];
    }
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        Body *b = t->bodies + i;
        const int v = (int)j->v, n = j->prescribed ? 0 : (int)j->size;
        if (j->prescribed == IDLE) continue;
        const Row *o = t->rows + v;
        const v4 *x = j->parent < 0 ? none : t->bodies[(int)j->parent].x;
        move_out(b, x, b->x);
        if (j->prescribed < 0) meet(t, j, o, j->ratio * dz[(int)j->lead], b);
        for (int l = 0; l < n; ++l) {
            dz[v + l] = -(dz[v + l] + (j->parent < 0 ? 0.0 : dot9(o[l].row_in, x)));
            for (int c = 0; c < 3; ++c) b->x[c] += dz[v + l] * o[l].phi[c];
        }
    }
}
