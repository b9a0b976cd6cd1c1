/* LANES right-hand sides of Newton's equation side by side. */

INLINE v8 dot_lanes(const v4 *a, const v8 *x, int plane)
{
    v8 total = a[0][0] * x[0];
    for (int i = 1; i < components(plane); ++i) total += component(a, i, plane) * x[i];
    return total;
}

/* y += s a. */
INLINE void add_lanes(v8 s, const v4 *a, v8 *y, int plane)
{
    for (int i = 0; i < components(plane); ++i) y[i] += component(a, i, plane) * s;
}

/* p x x, of which the plane has the third component. */
INLINE v8 cross_lanes(v4 p, const v8 *x, int i)
{
    const int y = (i + 1) % 3, z = (i + 2) % 3;
    return p[y] * x[z] - p[z] * x[y];
}

INLINE void lanes_in(const Body *b, const v8 *y, v8 *x, int plane)
{
    for (int i = turns_from(plane); i < 3; ++i) {
        const int turn = place_in(0, i, plane), rate = place_in(1, i, plane);
        x[turn] += y[turn];
        x[rate] += y[rate] + cross_lanes(b->p, y + place_in(2, 0, plane), i);
    }
    for (int i = place_in(2, 0, plane); i < components(plane); ++i) x[i] += y[i];
}

INLINE void lanes_out(const Body *b, const v8 *x, v8 *y, int plane)
{
    const int shift = place_in(2, 0, plane);
    for (int i = 0; i < shift; ++i) y[i] = x[i];
    if (plane) {
        y[2] = x[2] - b->p[1] * x[1];
        y[3] = x[3] + b->p[0] * x[1];
    } else
        for (int i = 0; i < 3; ++i) y[6 + i] = x[6 + i] - cross_lanes(b->p, x + 3, i);
}
