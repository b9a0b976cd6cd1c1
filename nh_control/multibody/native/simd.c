/* LANES right-hand sides of Newton's equation side by side. */

INLINE vn dot_lanes(const v4 *a, const vn *x, int plane)
{
    vn total = a[0][0] * x[0];
    for (int i = 1; i < components(plane); ++i) total += component(a, i, plane) * x[i];
    return total;
}

/* y += s a. */
INLINE void add_lanes(vn s, const v4 *a, vn *y, int plane)
{
    for (int i = 0; i < components(plane); ++i) y[i] += component(a, i, plane) * s;
}

/* p x x, of which the plane has the third component. */
INLINE vn cross_lanes(v4 p, const vn *x, int i)
{
    const int y = (i + 1) % 3, z = (i + 2) % 3;
    return p[y] * x[z] - p[z] * x[y];
}

INLINE void lanes_in(const Body *b, const vn *y, vn *x, int plane)
{
    for (int i = turns_from(plane); i < 3; ++i) {
        const int turn = place_in(0, i, plane), rate = place_in(1, i, plane);
        x[turn] += y[turn];
        x[rate] += y[rate] + cross_lanes(b->p, y + place_in(2, 0, plane), i);
    }
    for (int i = place_in(2, 0, plane); i < components(plane); ++i) x[i] += y[i];
}

INLINE void lanes_out(const Body *b, const vn *x, vn *y, int plane)
{
    const int shift = place_in(2, 0, plane);
    for (int i = 0; i < shift; ++i) y[i] = x[i];
    if (plane) {
        y[2] = x[2] - b->p[1] * x[1];
        y[3] = x[3] + b->p[0] * x[1];
    } else
        for (int i = 0; i < 3; ++i) y[6 + i] = x[6 + i] - cross_lanes(b->p, x + 3, i);
}

/* The lanes of `count` columns into a row of a matrix, and out of it. */
INLINE void put(double *row, int count, vn x)
{
    if (count == LANES) *(vn *)row = x;
    else
        for (int l = 0; l < count; ++l) row[l] = x[l];
}
INLINE vn lanes_of(const double *row, int count)
{
    vn x = {0};
    if (count == LANES) return *(const vn *)row;
    for (int l = 0; l < count; ++l) x[l] = row[l];
    return x;
}

/* b (n) becomes a^{-1} b by the LU factors of `lu_factor`. */
static void lu_solve_lanes(const double *a, int n, const int *order, vn *b)
{
    vn c[n];
    for (int i = 0; i < n; ++i) {
        c[i] = b[order[i]];
        for (int l = 0; l < i; ++l) c[i] -= a[(size_t)n * order[i] + l] * c[l];
    }
    for (int i = n - 1; i >= 0; --i) {
        for (int l = i + 1; l < n; ++l) c[i] -= a[(size_t)n * order[i] + l] * c[l];
        c[i] /= a[(size_t)n * order[i] + i];
    }
    memcpy(b, c, sizeof(vn) * n);
}
