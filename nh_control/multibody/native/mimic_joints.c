/* Joints that follow others by a ratio of their coordinates: the tree's factors leave the
 * coordinates that joints share, s, as if they were prescribed. With K of Newton's equation and t
 * the others,
 *
 *     dz_t = -K_tt^{-1} r_t + Y dz_s,   Y = -K_tt^{-1} K_ts,
 *     (K_ss + K_st Y) dz_s = -(r_s - K_st K_tt^{-1} r_t). */

static int factor_shared(const Tree *t)
{
    const int n = t->leaders;
    double none[t->nz];
    memset(none, 0, sizeof none);
    for (int a = 0; a < n; ++a) {
        double *y = t->Y_shared + (size_t)t->all * a;
        memset(y, 0, sizeof(double) * t->all);
        memset(t->met, 0, sizeof(double) * t->all);
        y[t->lead[a]] = 1.0;
        solve_tree(t, none, y);
        for (int b = 0; b < n; ++b) t->shared[n * b + a] = t->met[t->lead[b]];
    }
    return lu_factor(t->shared, n, t->shared_order);
}

INLINE int factor_joints(const Tree *t, int slopes, int mass)
{
    if (factor_with(t, slopes, mass)) return 1;
    return t->leaders ? factor_shared(t) : 0;
}

/* dz = -r_z^{-1} r. */
static void solve_joints(const Tree *t, const double *r, double *dz)
{
    const int n = t->leaders;
    double right[n + 1];
    if (n) memset(t->met, 0, sizeof(double) * t->all);
    for (int a = 0; a < n; ++a) dz[t->lead[a]] = 0.0;
    solve_tree(t, r, dz);
    if (!n) return;
    for (int a = 0; a < n; ++a) right[a] = -r[t->lead[a]] - t->met[t->lead[a]];
    lu_solve(t->shared, n, t->shared_order, right, right);
    for (int a = 0; a < n; ++a)
        for (int v = 0; v < t->nz; ++v) dz[v] += t->Y_shared[(size_t)t->all * a + v] * right[a];
}

INLINE void add(double *row, int count, vn x)
{
    for (int l = 0; l < count; ++l) row[l] += x[l];
}

/* Where columns add up what the joints that share a coordinate give. */
static void begin_shared(const Tree *t, int count, int first, int nw, double *ab, double *dz)
{
    for (int a = 0; a < t->leaders; ++a) {
        memset(ab + (size_t)nw * t->lead[a] + first, 0, sizeof(double) * count);
        memset(ab + (size_t)nw * (t->nv + t->lead[a]) + first, 0, sizeof(double) * count);
        memset(dz + (size_t)nw * t->lead[a] + first, 0, sizeof(double) * count);
    }
}
