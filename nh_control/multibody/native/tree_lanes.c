/* LANES right-hand sides of Newton's equation side by side. */

INLINE v8 dot_lanes(const v4 *a, const v8 *x)
{
    v8 total = a[0][0] * x[0];
    for (int i = 1; i < 9; ++i) total += a[i / 3][i % 3] * x[i];
    return total;
}

INLINE void cross_lanes(v4 p, const v8 *x, v8 *y)
{
    y[0] = p[1] * x[2] - p[2] * x[1];
    y[1] = p[2] * x[0] - p[0] * x[2];
    y[2] = p[0] * x[1] - p[1] * x[0];
}

INLINE void lanes_in(const Body *b, const v8 *y, v8 *x)
{
    v8 lever[3];
    cross_lanes(b->p, y + 6, lever);
    for (int i = 0; i < 3; ++i) {
        x[i] += y[i];
        x[3 + i] += y[3 + i] + lever[i];
        x[6 + i] += y[6 + i];
    }
}

INLINE void lanes_out(const Body *b, const v8 *x, v8 *y)
{
    v8 lever[3];
    cross_lanes(b->p, x + 3, lever);
    for (int i = 0; i < 6; ++i) y[i] = x[i];
    for (int i = 0; i < 3; ++i) y[6 + i] = x[6 + i] - lever[i];
}
