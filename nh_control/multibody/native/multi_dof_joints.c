/* Joints of several coordinates on manifolds, by the functions generated for every kind of them,
 *
 *     middle(q, z, h, turn, at, twist, Z0, S0)
 *     along(q, z, h, Zz, Sz)
 *     after(q, z, h, end, Z1, S1)
 *     bend(q, z, h, mu, b, K)
 *     slopes(q, z, h, mu, b, Zq, Sq, Kq, K1, K1q, Ez, Eq)
 *     growth(q, z, h, mu, b, Zh, Sh, before, after, end)
 *
 * of the joint's coordinates q and unknowns z: pose and twist in the middle of the step;
 * displacements D (Z0, Z1, ...) and twists S (6, n) by a change of the start that leaves the end
 * (0), of the end that leaves the start (1), of the unknowns (z) and of the start with them (q).
 * Rows of the step are
 *
 *     r = rho + h (Z0^T mu + S0^T b),   rho1 = h (Z1^T mu + S1^T b),   mu = a + ad_nu^T b;
 *
 * K...: derivatives of the brackets at fixed mu, b; Ez, Eq: those of local(end, .). */

static void joint_middle(const Tree *t, const Joint *j, const double *z, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].middle(t->q + (int)j->q, z + (int)j->v, &t->h, w->turn,
                                                 w->at, w->twist, w->Z0, w->S0);
}

static void joint_along(const Tree *t, const Joint *j, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].along(t->q + (int)j->q, t->at + (int)j->v, &t->h, w->Zz,
                                                w->Sz);
}

static void joint_after(const Tree *t, const Joint *j, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].after(t->q + (int)j->q, t->at + (int)j->v, &t->h, w->end,
                                                w->Z1, w->S1);
}

static void joint_bend(const Tree *t, const Joint *j, const double *mu, const double *b, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].bend(t->q + (int)j->q, t->at + (int)j->v, &t->h, mu, b,
                                               w->K);
}

static void joint_slopes(const Tree *t, const Joint *j, const double *mu, const double *b, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].slopes(t->q + (int)j->q, t->at + (int)j->v, &t->h, mu, b,
                                                 w->Zq, w->Sq, w->Kq, w->K1, w->K1q, w->Ez, w->Eq);
}

/* Column l of (6, n) numbers. */
INLINE Twist twist_of(const double *D, int n, int l)
{
    return (Twist){vec(D[l], D[n + l], D[2 * n + l]),
                   vec(D[3 * n + l], D[4 * n + l], D[5 * n + l])};
}

/* All columns, in the world's axes. */
INLINE void twists_of(const Body *b, const double *D, int n, Twist *all)
{
    for (int l = 0; l < n; ++l) {
        const Twist s = twist_of(D, n, l);
        all[l] = (Twist){outward(b, s.w), outward(b, s.v)};
    }
}

/* [nu, z] + s. */
INLINE void moved_twist(const Body *b, Twist z, Twist s, v4 *out)
{
    out[0] = z.w;
    out[1] = cross(b->nu_w, z.w) + s.w;
    out[2] = cross(b->nu_w, z.v) + cross(b->nu_v, z.w) + s.v;
}

/* -ad_D^T b. */
INLINE Twist bent_by(const Body *b, Twist D)
{
    return (Twist){cross(D.w, b->bm) + cross(D.v, b->bf), cross(D.w, b->bf)};
}

INLINE double power(Twist wrench, Twist motion)
{
    return sum(wrench.w * motion.w + wrench.v * motion.v);
}

/* A row of r, or of the momentum after the step: `left` on the body's wrenches, `row` on its
 * motion. */
INLINE void wide_left(const Tree *t, const Joint *j, const Body *b, Twist D, Twist S, v4 *left,
                      v4 *row)
{
    const Twist bend = bent_by(b, D);
    moved_twist(b, D, S, left);
    for (int c = 0; c < 3; ++c) left[c] *= t->h;
    times_rows(left, b->H, row, 0);
    row[0] += t->h * cross(D.v, load_on(t, j, b));
    row[1] += t->h * bend.w;
    row[2] += t->h * bend.v;
}

/* A motion of the body by its joint, and the parent's wrenches that it changes. */
INLINE void wide_column(const Tree *t, const Joint *j, const Body *b, Twist D, Twist S, v4 *phi,
                        v4 *column)
{
    const Twist bend = bent_by(b, D);
    moved_twist(b, D, S, phi);
    times_columns(b->H, phi, column, 0);
    column[0] += cross(D.w, b->am) + cross(D.v, load_on(t, j, b));
    column[1] += bend.w;
    column[2] += bend.v;
}

/* What rows meet in motions, row . phi + h (K - E . s), E = -ad_D^T b: by the displacements D (6,
 * n) of the rows and the twists s (6, n) of the motions. */
INLINE void meetings(const Tree *t, const Body *b, int n, const v4 *rows[MOST], const Twist *D,
                     const v4 *motions[MOST], const Twist *s, const double *K, double *all)
{
    for (int l = 0; l < n; ++l) {
        const Twist E = bent_by(b, D[l]);
        for (int m = 0; m < n; ++m)
            all[n * l + m] =
                inner(rows[l], motions[m], 0) + t->h * (K[n * l + m] - power(E, s[m]));
    }
}

static void wrenches_of(const Wide *w, double *mu, double *b)
{
    for (int i = 0; i < 3; ++i)
        mu[i] = w->am[i], mu[3 + i] = w->af[i], b[i] = w->bm[i], b[3 + i] = w->bf[i];
}

/* Rows of the step, motions by the unknowns, and pivot, or those of the mass matrix; with `slopes`
 * also rows of the momentum after the step, and motions by q. */
static void wide_row(const Tree *t, const Joint *j, const Body *b, int slopes, int mass)
{
    Wide *w = t->wides + (int)j->wide;
    Row *o = t->rows + (int)j->v;
    const int n = (int)j->size;
    const v4 *row[MOST], *row1[MOST], *phi[MOST], *phi_q[MOST];
    Twist Z0[MOST], Z1[MOST], D[MOST], S[MOST], Sz[MOST];
    double mu[6], wrench[6];
    wrenches_of(w, mu, wrench);
    joint_along(t, j, w);
    if (mass) memset(w->K, 0, sizeof w->K);
    else joint_bend(t, j, mu, wrench, w);
    twists_of(b, w->Z0, n, Z0);
    twists_of(b, w->S0, n, S);
    twists_of(b, w->Zz, n, D);
    twists_of(b, w->Sz, n, Sz);
    for (int l = 0; l < n; ++l) {
        wide_left(t, j, b, Z0[l], S[l], o[l].left, o[l].row);
        wide_column(t, j, b, D[l], Sz[l], o[l].phi, o[l].column);
        row[l] = o[l].row, row1[l] = o[l].row1, phi[l] = o[l].phi, phi_q[l] = o[l].phi_q;
    }
    meetings(t, b, n, row, Z0, phi, Sz, w->K, w->pivot);
    if (!slopes) return;
    joint_after(t, j, w);
    joint_slopes(t, j, mu, wrench, w);
    twists_of(b, w->Z1, n, Z1);
    twists_of(b, w->S1, n, S);
    for (int l = 0; l < n; ++l) wide_left(t, j, b, Z1[l], S[l], o[l].left1, o[l].row1);
    meetings(t, b, n, row1, Z1, phi, Sz, w->K1, w->slope1);
    twists_of(b, w->Zq, n, D);
    twists_of(b, w->Sq, n, S);
    for (int l = 0; l < n; ++l) wide_column(t, j, b, D[l], S[l], o[l].phi_q, o[l].column_q);
    meetings(t, b, n, row, Z0, phi_q, S, w->Kq, w->source);
    meetings(t, b, n, row1, Z1, phi_q, S, w->K1q, w->source1);
}

/* b (n) becomes a^{-1} right by its LU factors. */
INLINE void lu_solve_in(const double *a, int n, const int *order, const double *right, double *b)
{
    double c[n];
    for (int i = 0; i < n; ++i) {
        c[i] = right[order[i]];
        for (int l = 0; l < i; ++l) c[i] -= a[(size_t)n * order[i] + l] * c[l];
    }
    for (int i = n - 1; i >= 0; --i) {
        for (int l = i + 1; l < n; ++l) c[i] -= a[(size_t)n * order[i] + l] * c[l];
        c[i] /= a[(size_t)n * order[i] + i];
    }
    memcpy(b, c, sizeof(double) * n);
}

static void lu_solve(const double *a, int n, const int *order, const double *right, double *b)
{
    if (n == MOST) lu_solve_in(a, MOST, order, right, b); /* written out by the compiler */
    else lu_solve_in(a, n, order, right, b);
}

static void solve_wide(const Wide *w, int n, const double *right, double *b)
{
    lu_solve(w->pivot, n, w->order, right, b);
}

/* LU factors of a (n, n) in place, its rows in `order`; 1 where it is singular. */
static int lu_factor(double *a, int n, int *order)
{
    for (int i = 0; i < n; ++i) order[i] = i;
    for (int k = 0; k < n; ++k) {
        int p = k;
        for (int i = k + 1; i < n; ++i)
            if (!(fabs(a[(size_t)n * order[i] + k]) <= fabs(a[(size_t)n * order[p] + k]))) p = i;
        const int row = order[p];
        order[p] = order[k];
        order[k] = row;
        const double pivot = a[(size_t)n * row + k];
        if (!(fabs(pivot) > 0.0 && fabs(pivot) < INFINITY)) return 1;
        for (int i = k + 1; i < n; ++i) {
            double *other = a + (size_t)n * order[i];
            const double f = other[k] /= pivot;
            for (int l = k + 1; l < n; ++l) other[l] -= f * a[(size_t)n * row + l];
        }
    }
    return 0;
}

/* The factors of a joint's pivot, with which its rows are solved; 1 where it is singular. */
static int factor_wide(const Tree *t, const Joint *j)
{
    Wide *w = t->wides + (int)j->wide;
    Row *o = t->rows + (int)j->v;
    const int n = (int)j->size;
    v4 solved[MOST][6];
    if (lu_factor(w->pivot, n, w->order)) return 1;
    for (int i = 0; i < n; ++i) {
        const Row *from = o + w->order[i];
        const double *a = w->pivot + n * w->order[i];
        for (int c = 0; c < 6; ++c) solved[i][c] = c < 3 ? from->row[c] : from->left[c - 3];
        for (int l = 0; l < i; ++l)
            for (int c = 0; c < 6; ++c) solved[i][c] -= a[l] * solved[l][c];
    }
    for (int i = n - 1; i >= 0; --i) {
        const double *a = w->pivot + n * w->order[i];
        for (int l = i + 1; l < n; ++l)
            for (int c = 0; c < 6; ++c) solved[i][c] -= a[l] * solved[l][c];
        for (int c = 0; c < 6; ++c) solved[i][c] /= a[i];
        memcpy(o[i].row, solved[i], sizeof o[i].row);
        memcpy(o[i].left, solved[i] + 3, sizeof o[i].left);
    }
    return 0;
}
