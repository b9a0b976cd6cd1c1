/* Newton's equation with springs and dampers between points. Changes y of their forces are further
 * unknowns, three of each. With G of them by the motion, and W what they do in the rows,
 *
 *     dz0 = -r_z^{-1} r,   Y = r_z^{-1} W^T,   dz = dz0 - Y y,   (1 + G Y) y = G dz0,
 *
 * r_z with the turning of forces that do not change. Of those of dampers it is left out by the
 * derivatives, which have them by coordinates (linearization.c); that of joints of several
 * coordinates is as if these were springs. */

static void solve_joint_rows(const Tree *t, const double *W, int rows, int held, double *Y);

static int n_bonded(const Tree *t, int slopes)
{
    return 3 * (t->springs + (slopes ? 0 : t->dampers));
}

/* W and G of the springs, and unless they are for the `slopes`, of the dampers; W of the momentum
 * after the step, and G by the start, too, for these. */
static void load_bonds(const Tree *t, int slopes)
{
    for (int i = 0; i < t->springs + (slopes ? 0 : t->dampers); ++i) {
        const Bond *c = t->bonds + i;
        const int row = 3 * t->nv * i;
        double *before = t->before + row, *z = t->by_z + row, *q = t->by_q + row;
        if (i >= t->springs) {
            bond_rows(t, c, UNITS, t->left * t->h, UNIT, before);
            changes_of_damper(t, c, z, q);
            continue;
        }
        v4 K[3];
        spring_slope(c, stretch(t, c), K);
        bond_rows(t, c, UNITS, 1.0, BEFORE, before);
        bond_rows(t, c, K, -1.0, BY_UNKNOWN, z);
        if (slopes) bond_rows(t, c, UNITS, 1.0, AFTER, t->after + row);
        if (slopes) bond_rows(t, c, K, -1.0, BY_START, q);
    }
}

/* The forces of dampers among those that are carried, for a while. */
static void pull_dampers(const Tree *t)
{
    for (int i = 0; i < t->n; ++i) {
        t->bodies[i].kept[0] = t->bodies[i].am;
        t->bodies[i].kept[1] = t->bodies[i].pulled;
    }
    for (int i = t->springs; i < t->springs + t->dampers; ++i) {
        const Bond *c = t->bonds + i;
        const v4 force = bond_force(t, c);
        for (int end = 0; end < 2; ++end) {
            int body = (int)(end ? c->b : c->a);
            v4 lever = lever_of(t, body, end ? c->at_b : c->at_a);
            for (; body >= 0; body = (int)t->joints[body].parent) {
                Body *b = t->bodies + body;
                b->am += cross(lever, end ? -force : force);
                b->pulled += end ? -force : force;
                lever += b->p;
            }
        }
    }
}

static void release_dampers(const Tree *t)
{
    for (int i = 0; i < t->n; ++i) {
        t->bodies[i].am = t->bodies[i].kept[0];
        t->bodies[i].pulled = t->bodies[i].kept[1];
    }
}

INLINE int factor_whole(const Tree *t, int slopes, int mass)
{
    const int n = n_bonded(t, slopes), nv = t->nv;
    const int damped = t->dampers && !slopes && !mass;
    if (damped) pull_dampers(t);
    const int singular = factor_joints(t, slopes, mass);
    if (damped) release_dampers(t);
    if (singular) return 1;
    if (!n) return 0;
    load_bonds(t, slopes);
    solve_joint_rows(t, t->before, n, 0, t->reply);
    for (int r = 0; r < n; ++r)
        for (int s = 0; s < n; ++s)
            t->bonded[n * r + s] = (r == s) + product(t->nz, t->by_z + nv * r, t->reply + nv * s);
    return lu_factor(t->bonded, n, t->bonded_order);
}

static int factor(const Tree *t) { return factor_whole(t, 0, 0); }
static int factor_mass(const Tree *t) { return factor_whole(t, 0, 1); }
static int factor_slopes(const Tree *t) { return factor_whole(t, 1, 0); }

/* What springs and dampers change in a solution dz0 without them. */
static void couple(const Tree *t, double *dz)
{
    const int n = n_bonded(t, 0), nv = t->nv;
    double y[n + 1];
    for (int i = 0; i < n; ++i) y[i] = product(t->nz, t->by_z + nv * i, dz);
    if (n) lu_solve(t->bonded, n, t->bonded_order, y, y);
    for (int i = 0; i < n; ++i)
        for (int v = 0; v < t->nz; ++v) dz[v] -= y[i] * t->reply[nv * i + v];
}

/* dz = -r_z^{-1} r. */
static void solve(const Tree *t, const double *r, double *dz)
{
    solve_joints(t, r, dz);
    couple(t, dz);
}
