/* Newton's equation r + r_z dz = 0 by the Riccati recursion from the leaves: on every body
 *
 *     (dam, db) = H (turn, dxi) + c,
 *
 * turn its rotation in its frame. With H of a body, its joint's column and row, and F from the
 * motion of the parent to that of the body,
 *
 *     pivot = left . (H phi + ...),   dz = -(row . x + right) / pivot,
 *     G_parent += F^T (H - column row / pivot) F. */

/* H of a body alone; those of its children are added to it. */
INLINE void own_inertia(const Joint *j, Body *b, int plane)
{
    const v4 zero = vec(0, 0, 0), c = b->first;
    const v4 lever[3] = {vec(0, -c[2], c[1]), vec(c[2], 0, -c[0]), vec(-c[1], c[0], 0)};
    const v4 J[3] = {outward(b, j->inertia[0]), outward(b, j->inertia[1]),
                     outward(b, j->inertia[2])};
    for (int i = turns_from(plane); i < 3; ++i) {
        const v4 about =
            plane ? j->inertia[2][2] * UNITS[2]
                  : J[0][i] * b->column[0] + J[1][i] * b->column[1] + J[2][i] * b->column[2];
        pack(zero, zero, zero, row_of(b->H, 0, i, plane), plane);
        pack(zero, about, lever[i], row_of(b->H, 1, i, plane), plane);
    }
    for (int i = 0; i < ways(plane); ++i)
        pack(zero, -lever[i], j->mass * UNITS[i], row_of(b->H, 2, i, plane), plane);
    b->carried = c;
}

/* The torque of a force f with the lever c turns by f x turn: c x (f x turn) = f (c . turn) - (c .
 * f) turn. Of gravity, c are the first moments. */
INLINE void add_lever(v4 f, v4 c, Body *b, int plane)
{
    const double along = dot(c, f);
    for (int i = turns_from(plane); i < 3; ++i) {
        const v4 turned = f[i] * c - along * UNITS[i];
        *row_of(b->H, 0, i, plane) += plane ? turned[2] * UNITS[0] : turned;
    }
}

/* H of a body, which has begun with its own. */
INLINE void begin_inertia(const Joint *j, Body *b, int plane)
{
    if (!b->begun) own_inertia(j, b, plane);
    b->begun = 1.0;
}

/* A row of H without what the joint of n coordinates takes up, by motions of the parent; parts
 * from `part` on. */
INLINE void free_row(const Body *b, const Row *o, int n, int block, int i, int part, v4 *h,
                     int plane)
{
    const v4 *row = b->H + parts(plane) * place_in(block, i, plane);
    for (int c = part; c < parts(plane); ++c) h[c] = row[c];
    for (int l = 0; l < n; ++l) {
        const double f = component(o[l].column, place_in(block, i, plane), plane);
        for (int c = part; c < parts(plane); ++c) h[c] -= f * o[l].row[c];
    }
    move_in(b, h, plane);
}

/* Adds F^T (H - column row) F to the parent's H, of a mass matrix without turns. */
INLINE void pass_inward(const Joint *j, const Body *b, Row *o, int n, Body *parent, int mass,
                        int plane)
{
    const v4 p = b->p;
    const int end = parts(plane), part = mass && !plane;
    v4 f[3][3], h[3];
    for (int l = 0; l < n; ++l) {
        for (int c = 0; c < end; ++c)
            o[l].column_in[c] = o[l].column[c], o[l].row_in[c] = o[l].row[c];
        move_in(b, o[l].column_in, plane);
        move_in(b, o[l].row_in, plane);
    }
    for (int i = 0; i < ways(plane); ++i) {
        free_row(b, o, n, 2, i, part, f[i], plane);
        v4 *to = row_of(parent->H, 2, i, plane);
        for (int c = part; c < end; ++c) to[c] += f[i][c];
    }
    for (int i = turns_from(plane); i < 3; ++i) {
        const int y = (i + 1) % 3, z = (i + 2) % 3;
        free_row(b, o, n, 1, i, part, h, plane);
        v4 *to = row_of(parent->H, 1, i, plane);
        for (int c = part; c < end; ++c) to[c] += h[c] + p[y] * f[z][c] - p[z] * f[y][c];
    }
    for (int i = turns_from(plane); i < 3 && !mass; ++i) {
        free_row(b, o, n, 0, i, part, h, plane);
        v4 *to = row_of(parent->H, 0, i, plane);
        for (int c = 0; c < end; ++c) to[c] += h[c];
    }
    parent->carried += j->weight * p;
}

/* phi, left, column and row of a joint with one coordinate; with `slopes` also those of the
 * momentum after the step and by q. */
INLINE void scalar_row(const Tree *t, const Joint *j, const Body *b, int slopes, int plane)
{
    Row *o = t->rows + (int)j->v;
    const int end = parts(plane), turns = j->kind == REVOLUTE;
    const double k = t->k;
    const v4 zero = vec(0, 0, 0), S = axis_of(j, b->column);
    v4 moved[3], unit[3], bent[3], met[3]; /* met: `bent` but for what a turn gives */
    if (turns) {
        const v4 e_w = cross(S, b->bm), e_v = cross(S, b->bf);
        pack(S, cross(b->nu_w, S), cross(b->nu_v, S), moved, plane);
        pack(zero, S, zero, unit, plane);
        pack(cross(S, b->am), e_w, e_v, bent, plane);
        pack(zero, e_w, e_v, met, plane);
    } else {
        pack(zero, zero, cross(b->nu_w, S), moved, plane);
        pack(zero, zero, S, unit, plane);
        pack(cross(S, load_on(t, j, b)), cross(S, b->bf), zero, bent, plane);
        for (int c = 0; c < end; ++c) met[c] = bent[c];
    }
    for (int c = 0; c < end; ++c) {
        o->phi[c] = k * moved[c] + unit[c];
        o->left[c] = k * moved[c] - unit[c];
    }
    times_columns(b->H, o->phi, o->column, plane);
    times_rows(o->left, b->H, o->row, plane);
    for (int c = 0; c < end; ++c) o->column[c] += k * bent[c], o->row[c] += k * met[c];
    o->pivot = inner(o->row, o->phi, plane) - k * k * j->stiffness - t->left * t->h * j->damping;
    if (!slopes) return;
    for (int c = 0; c < end; ++c) o->left1[c] = o->phi[c], o->phi_q[c] = moved[c];
    times_rows(o->left1, b->H, o->row1, plane);
    times_columns(b->H, o->phi_q, o->column_q, plane);
    for (int c = 0; c < end; ++c) o->row1[c] += k * met[c], o->column_q[c] += bent[c];
    o->slope1 =
        inner(o->row1, o->phi, plane) - k * k * j->stiffness - (1 - t->left) * t->h * j->damping;
    o->source = inner(o->row, o->phi_q, plane) - k * j->stiffness;
    o->source1 = inner(o->row1, o->phi_q, plane) - k * j->stiffness;
}

/* The same of the mass matrix in the place of r_z, as if nothing moved and gravity did not turn */
INLINE void mass_row(const Tree *t, const Joint *j, const Body *b, int plane)
{
    Row *o = t->rows + (int)j->v;
    const v4 zero = vec(0, 0, 0), S = axis_of(j, b->column);
    const int turns = j->kind == REVOLUTE, part = turns ? 1 : 2;
    pack(zero, turns ? S : zero, turns ? zero : S, o->phi, plane);
    if (plane) times_columns(b->H, o->phi, o->column, plane);
    else {
        v4 all[9];
        for (int i = 3; i < 9; ++i) all[i] = b->H[3 * i + part] * S;
        o->column[0] = zero;
        for (int c = 1; c < 3; ++c)
            o->column[c] = sums(all[3 * c], all[3 * c + 1], all[3 * c + 2]);
    }
    for (int c = 0; c < parts(plane); ++c) o->left[c] = -o->phi[c], o->row[c] = -o->column[c];
    o->pivot =
        inner(o->row, o->phi, plane) - t->k * t->k * j->stiffness - t->left * t->h * j->damping;
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
INLINE int eliminate(const Tree *t, const Joint *j, Body *b, int mass, int plane)
{
    Row *o = t->rows + (int)j->v;
    const int n = plane ? 1 : (int)j->size;
    if (n == 1 && !j->prescribed) {
        if (!(fabs(o->pivot) > 0.0 && fabs(o->pivot) < INFINITY)) return 1;
        const double by = 1.0 / o->pivot;
        for (int c = 0; c < parts(plane); ++c) o->row[c] *= by, o->left[c] *= by;
    }
    if (n > 1 && factor_wide(t, j)) return 1;
    if (j->parent < 0) return 0;
    Body *parent = t->bodies + (int)j->parent;
    begin_inertia(t->joints + (int)j->parent, parent, plane);
    if (j->prescribed) pass_inward(j, b, o, 0, parent, mass, plane);
    else if (n == 1) pass_inward(j, b, o, 1, parent, mass, plane);
    else pass_inward(j, b, o, n, parent, mass, plane);
    if (t->springs + t->dampers && !mass) add_lever(b->pulled, b->p, parent, plane);
    return 0;
}

/* The turning of the forces of springs and dampers on the bodies at their ends. */
INLINE void bend_bonds(const Tree *t, int bonds, int plane)
{
    for (int i = 0; i < bonds; ++i) {
        const Bond *c = t->bonds + i;
        const v4 force = bond_force(t, c);
        for (int end = 0; end < 2; ++end) {
            const int body = (int)(end ? c->b : c->a);
            if (body < 0) continue;
            begin_inertia(t->joints + body, t->bodies + body, plane);
            add_lever(end ? -force : force, lever_of(t, body, end ? c->at_b : c->at_a),
                      t->bodies + body, plane);
        }
    }
}

/* Factors of r_z where the last residual was taken, or of the mass matrix; 1 if it is singular. */
INLINE int factor_in(const Tree *t, int slopes, int mass, int plane)
{
    for (int i = 0; i < t->n; ++i) t->bodies[i].begun = 0.0;
    if (!mass) bend_bonds(t, t->springs + (slopes ? 0 : t->dampers), plane);
    for (int i = t->n - 1; i >= 0; --i) {
        const Joint *j = t->joints + i;
        Body *b = t->bodies + i;
        if (j->prescribed == IDLE) continue;
        begin_inertia(j, b, plane);
        if (!mass) add_lever(t->gravity, b->carried, b, plane);
        if (!plane && j->kind >= MANIFOLD)
            mass ? wide_mass_row(t, j, b) : wide_row(t, j, b, slopes, 0);
        else mass ? mass_row(t, j, b, plane) : scalar_row(t, j, b, slopes, plane);
        if (eliminate(t, j, b, mass, plane)) return 1;
    }
    return 0;
}

INLINE int factor_with(const Tree *t, int slopes, int mass)
{
    return t->plane ? factor_in(t, slopes, mass, 1) : factor_in(t, slopes, mass, 0);
}

/* What a joint that shares its coordinate gives the row of that one, as itself moves by `by`. */
INLINE void meet(const Tree *t, const Joint *j, const Row *o, double by, Body *b, int plane)
{
    t->met[(int)j->lead] +=
        j->ratio * (inner(o->row, b->x, plane) + inner(o->left, b->c, plane) + by * o->pivot);
    for (int c = 0; c < parts(plane); ++c) b->x[c] += by * o->phi[c];
}

/* The wrenches of its parent, as it moves so. */
INLINE void pass_shared(const Body *b, const Row *o, double by, v4 *c, int plane)
{
    v4 moved[3];
    for (int k = 0; k < parts(plane); ++k) moved[k] = by * o->column[k];
    add_in(b, moved, c, plane);
}

/* dz = -r_z^{-1} r, but for coordinates that joints share: dz has their changes. */
INLINE void solve_in(const Tree *t, const double *r, double *dz, int plane)
{
    const v4 none[3] = {vec(0, 0, 0), vec(0, 0, 0), vec(0, 0, 0)};
    const int end = parts(plane);
    for (int i = 0; i < t->n; ++i) memcpy(t->bodies[i].c, none, sizeof *none * end);
    for (int i = t->n - 1; i >= 0; --i) {
        const Joint *j = t->joints + i;
        const Body *b = t->bodies + i;
        const int v = (int)j->v, n = j->prescribed ? 0 : plane ? 1 : (int)j->size;
        if (j->prescribed == IDLE) continue;
        const Row *o = t->rows + v;
        if (n == 1) dz[v] = r[v] / o->pivot;
        else if (n > 1) solve_wide(t->wides + (int)j->wide, n, r + v, dz + v);
        for (int l = 0; l < n; ++l) dz[v + l] += inner(o[l].left, b->c, plane);
        if (j->parent < 0) continue;
        v4 *c = t->bodies[(int)j->parent].c;
        add_in(b, b->c, c, plane);
        if (j->prescribed < 0) pass_shared(b, o, j->ratio * dz[(int)j->lead], c, plane);
        for (int l = 0; l < n; ++l)
            for (int k = 0; k < end; ++k) c[k] -= dz[v + l] * o[l].column_in[k];
    }
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        Body *b = t->bodies + i;
        const int v = (int)j->v, n = j->prescribed ? 0 : plane ? 1 : (int)j->size;
        if (j->prescribed == IDLE) continue;
        const Row *o = t->rows + v;
        const v4 *x = j->parent < 0 ? none : t->bodies[(int)j->parent].x;
        move_out(b, x, b->x, plane);
        if (j->prescribed < 0) meet(t, j, o, j->ratio * dz[(int)j->lead], b, plane);
        for (int l = 0; l < n; ++l) {
            dz[v + l] = -(dz[v + l] + (j->parent < 0 ? 0.0 : inner(o[l].row_in, x, plane)));
            for (int c = 0; c < end; ++c) b->x[c] += dz[v + l] * o[l].phi[c];
        }
    }
}

static void solve_tree(const Tree *t, const double *r, double *dz)
{
    if (t->plane) solve_in(t, r, dz, 1);
    else solve_in(t, r, dz, 0);
}
