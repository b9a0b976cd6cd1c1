/* Joints of several coordinates on manifolds, by the functions generated for every kind of them:
 *   middle(q, z, h, turn, at, twist, Z0, S0, Zz, Sz), after(q, z, h, end, Z1, S1), bend(q, z, h, mu, b, K),
 *   slopes(q, z, h, mu, b, Zq, Sq, Kq, K1, K1q, Ez, Eq), growth(q, z, h, mu, b, Zh, Sh, before, after, end)
 * of the joint's coordinates q and unknowns z: pose and twist in the middle of the step; displacements D (Z0, Z1, ...) and twists S (6, n) by a change of the start that leaves the end (0), of the end that
 * leaves the start (1), of the unknowns (z) and of the start with them (q). Rows of the step are
 *   r = rho + h (Z0^T mu + S0^T b),   rho1 = h (Z1^T mu + S1^T b),   mu = a + ad_nu^T b;   K...: derivatives of the brackets at fixed mu, b; Ez, Eq: those of local(end, .). */

static void joint_middle(const Tree *t, const Joint *j, const double *z, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].middle(t->q + (int)j->q, z + (int)j->v, &t->h, w->turn, w->at, w->twist, w->Z0, w->S0, w->Zz, w->Sz);
}

static void joint_after(const Tree *t, const Joint *j, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].after(t->q + (int)j->q, t->at + (int)j->v, &t->h, w->end, w->Z1, w->S1);
}

static void joint_bend(const Tree *t, const Joint *j, const double *mu, const double *b, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].bend(t->q + (int)j->q, t->at + (int)j->v, &t->h, mu, b, w->K);
}

static void joint_slopes(const Tree *t, const Joint *j, const double *mu, const double *b, Wide *w)
{
    t->functions[(int)j->kind - MANIFOLD].slopes(t->q + (int)j->q, t->at + (int)j->v, &t->h, mu, b, w->Zq, w->Sq, w->Kq, w->K1, w->K1q, w->Ez, w->Eq);
}

/* Column l of (6, n) numbers. */
INLINE Twist twist_of(const double *D, int n, int l) { return (Twist){vec(D[l], D[n + l], D[2 * n + l]), vec(D[3 * n + l], D[4 * n + l], D[5 * n + l])}; }

/* [nu, z] + s. */
INLINE void moved_twist(const Body *b, Twist z, Twist s, v4 *out)
{
    out[0] = z.w;
    out[1] = cross(b->nu_w, z.w) + s.w;
    out[2] = cross(b->nu_w, z.v) + cross(b->nu_v, z.w) + s.v;
}

/* a^T (m on the 9 wrench components) times H. */
INLINE void times_rows(const v4 *a, const v4 (*H)[3], v4 *out)
{
    for (int c = 0; c < 3; ++c) out[c] = vec(0, 0, 0);
    for (int i = 0; i < 9; ++i) {
        const double f = a[i / 3][i % 3];
        for (int c = 0; c < 3; ++c) out[c] += f * H[i][c];
    }
}

INLINE void times_columns(const v4 (*H)[3], const v4 *x, v4 *out)
{
    for (int i = 0; i < 9; ++i) out[i / 3][i % 3] = dot9(H[i], x);
}

/* A row of r, or of the momentum after the step: `left` on the body's wrenches, `row` on its motion. */
INLINE void wide_left(const Tree *t, const Joint *j, const Body *b, Twist D, Twist S, v4 *left, v4 *row)
{
    moved_twist(b, D, S, left);
    for (int c = 0; c < 3; ++c) left[c] *= t->h;
    times_rows(left, b->H, row);
    row[0] += (t->h * j->weight) * cross(D.v, b->gravity);
    row[1] += t->h * (cross(D.w, b->bm) + cross(D.v, b->bf));
    row[2] += t->h * cross(D.w, b->bf);
}

/* A motion of the body by its joint, and the parent's wrenches that it changes. */
INLINE void wide_column(const Joint *j, const Body *b, Twist D, Twist S, v4 *phi, v4 *column)
{
    moved_twist(b, D, S, phi);
    times_columns(b->H, phi, column);
    column[0] += cross(D.w, b->am) + j->weight * cross(D.v, b->gravity);
    column[1] += cross(D.w, b->bm) + cross(D.v, b->bf);
    column[2] += cross(D.w, b->bf);
}

/* E . s, E = -ad_D^T b. */
INLINE double by_twist(const Body *b, Twist D, Twist s) { return dot(cross(D.w, b->bm) + cross(D.v, b->bf), s.w) + dot(cross(D.w, b->bf), s.v); }

/* What a row meets in a motion: row . phi + h (K - E . s). */
INLINE double meeting(const Tree *t, const Body *b, const v4 *row, Twist D, const v4 *phi, Twist s, double K)
{
    return dot9(row, phi) + t->h * (K - by_twist(b, D, s));
}

static void wrenches_of(const Wide *w, double *mu, double *b)
{
    for (int i = 0; i < 3; ++i) mu[i] = w->am[i], mu[3 + i] = w->af[i], b[i] = w->bm[i], b[3 + i] = w->bf[i];
}

/* The rows of the momentum after the step, and changes of q. */
static void wide_slopes(const Tree *t, const Joint *j, const Body *b)
{
    Wide *w = t->wides + (int)j->wide;
    Row *o = t->rows + (int)j->v;
    const int n = (int)j->size;
    double mu[6], wrench[6];
    wrenches_of(w, mu, wrench);
    joint_after(t, j, w);
    joint_slopes(t, j, mu, wrench, w);
    for (int l = 0; l < n; ++l) {
        wide_left(t, j, b, twist_of(w->Z1, n, l), twist_of(w->S1, n, l), o[l].left1, o[l].row1);
        wide_column(j, b, twist_of(w->Zq, n, l), twist_of(w->Sq, n, l), o[l].phi_q, o[l].column_q);
    }
    for (int l = 0; l < n; ++l)
        for (int m = 0; m < n; ++m) {
            const Twist Z0 = twist_of(w->Z0, n, l), Z1 = twist_of(w->Z1, n, l), Sz = twist_of(w->Sz, n, m), Sq = twist_of(w->Sq, n, m);
            const int at = n * l + m;
            w->slope1[at] = meeting(t, b, o[l].row1, Z1, o[m].phi, Sz, w->K1[at]);
            w->source[at] = meeting(t, b, o[l].row, Z0, o[m].phi_q, Sq, w->Kq[at]);
            w->source1[at] = meeting(t, b, o[l].row1, Z1, o[m].phi_q, Sq, w->K1q[at]);
        }
}

static void wide_row(const Tree *t, const Joint *j, const Body *b, int slopes)
{
    Wide *w = t->wides + (int)j->wide;
    Row *o = t->rows + (int)j->v;
    const int n = (int)j->size;
    double mu[6], wrench[6];
    wrenches_of(w, mu, wrench);
    joint_bend(t, j, mu, wrench, w);
    for (int l = 0; l < n; ++l) {
        wide_left(t, j, b, twist_of(w->Z0, n, l), twist_of(w->S0, n, l), o[l].left, o[l].row);
        wide_column(j, b, twist_of(w->Zz, n, l), twist_of(w->Sz, n, l), o[l].phi, o[l].column);
    }
    for (int l = 0; l < n; ++l)
        for (int m = 0; m < n; ++m) w->pivot[n * l + m] = meeting(t, b, o[l].row, twist_of(w->Z0, n, l), o[m].phi, twist_of(w->Sz, n, m), w->K[n * l + m]);
    if (slopes) wide_slopes(t, j, b);
}

/* b (n) becomes a^{-1} right by its LU factors. */
static void lu_solve(const double *a, int n, const int *order, const double *right, double *b)
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

static void solve_wide(const Wide *w, int n, const double *right, double *b) { lu_solve(w->pivot, n, w->order, right, b); }

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
    if (lu_factor(w->pivot, n, w->order)) return 1;
    for (int i = 0; i < 9; ++i) {
        double row[MOST], left[MOST];
        for (int l = 0; l < n; ++l) row[l] = o[l].row[i / 3][i % 3], left[l] = o[l].left[i / 3][i % 3];
        solve_wide(w, n, row, row);
        solve_wide(w, n, left, left);
        for (int l = 0; l < n; ++l) o[l].row[i / 3][i % 3] = row[l], o[l].left[i / 3][i % 3] = left[l];
    }
    return 0;
}
