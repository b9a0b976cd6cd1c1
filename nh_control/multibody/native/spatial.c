/* Motions (turn, dxi) of a body and wrenches (am, bm, bf), dual to them, as vectors. In space they
 * are three; in a tree that stays in a plane, whose normal is the world's z, one of the components
 * (turn_z, w_z, v_x, v_y), and the others are not asked for. `plane` is a constant wherever it
 * counts, so that all is compiled for both. */

INLINE int parts(int plane) { return plane ? 1 : 3; }
INLINE int components(int plane) { return plane ? 4 : 9; }
INLINE double component(const v4 *x, int i, int plane)
{
    return plane ? x[0][i] : x[i / 3][i % 3];
}

/* Bodies turn about the axes from `turns_from` on to the last, and move along the first `ways` of
 * them. */
INLINE int turns_from(int plane) { return plane ? 2 : 0; }
INLINE int ways(int plane) { return plane ? 2 : 3; }

/* Where axis i of turn (block 0), w (1) or v (2) is among the components, and its row of H. */
INLINE int place_in(int block, int i, int plane)
{
    return plane ? block + (block == 2 ? i : 0) : 3 * block + i;
}
INLINE v4 *row_of(v4 *H, int block, int i, int plane)
{
    return H + parts(plane) * place_in(block, i, plane);
}

/* The vectors of a motion, or of a wrench. */
INLINE void pack(v4 turn, v4 w, v4 v, v4 *x, int plane)
{
    if (plane) {
        x[0] = (v4){turn[2], w[2], v[0], v[1]};
        return;
    }
    x[0] = turn;
    x[1] = w;
    x[2] = v;
}

/* a . b. */
INLINE double inner(const v4 *a, const v4 *b, int plane)
{
    const v4 c = a[0] * b[0];
    return plane ? (c[0] + c[1]) + (c[2] + c[3]) : sum(c + a[1] * b[1] + a[2] * b[2]);
}

/* (sum(a), sum(b), sum(c), sum(d)) of all four numbers. */
INLINE v4 sums4(v4 a, v4 b, v4 c, v4 d)
{
    const v4 ab = MIX(a, b, 0, 4, 2, 6) + MIX(a, b, 1, 5, 3, 7),
             cd = MIX(c, d, 0, 4, 2, 6) + MIX(c, d, 1, 5, 3, 7);
    return MIX(ab, cd, 0, 1, 4, 5) + MIX(ab, cd, 2, 3, 6, 7);
}

/* x x turn; in the plane without what leaves it. */
INLINE v4 by_turn(v4 x, v4 turn, int plane)
{
    return plane ? SHUFFLE(x, 1, 0, 3, 3) * ((v4){1, -1, 0, 0} * turn[2]) : cross(x, turn);
}

/* What a turn in the plane moves at p. */
INLINE v4 arm(v4 p) { return SHUFFLE(p, 3, 3, 1, 0) * (v4){0, 0, -1, 1}; }

/* Motion of a body from its parent's. */
INLINE void move_out(const Body *b, const v4 *x, v4 *y, int plane)
{
    for (int c = 0; c < parts(plane); ++c) y[c] = x[c];
    if (plane) y[0] += x[0][1] * arm(b->p);
    else y[2] -= cross(b->p, x[1]);
}

/* A wrench of the body becomes one of the parent, but for the weight's lever. */
INLINE void move_in(const Body *b, v4 *y, int plane)
{
    if (plane) {
        const v4 zero = {0}, at = arm(b->p) * y[0];
        y[0] += MIX(at, zero, 4, 2, 4, 4) + MIX(at, zero, 4, 3, 4, 4);
    } else y[1] += cross(b->p, y[2]);
}

/* The same, added to the parent's x. */
INLINE void add_in(const Body *b, const v4 *y, v4 *x, int plane)
{
    v4 moved[3];
    for (int c = 0; c < parts(plane); ++c) moved[c] = y[c];
    move_in(b, moved, plane);
    for (int c = 0; c < parts(plane); ++c) x[c] += moved[c];
}

/* a^T (on the components of the wrench) times H. */
INLINE void times_rows(const v4 *a, const v4 *H, v4 *out, int plane)
{
    for (int c = 0; c < parts(plane); ++c) out[c] = vec(0, 0, 0);
    for (int i = 0; i < components(plane); ++i)
        for (int c = 0; c < parts(plane); ++c)
            out[c] += component(a, i, plane) * H[i * parts(plane) + c];
}

/* H times x. */
INLINE void times_columns(const v4 *H, const v4 *x, v4 *out, int plane)
{
    v4 all[9];
    if (plane) {
        out[0] = sums4(H[0] * x[0], H[1] * x[0], H[2] * x[0], H[3] * x[0]);
        return;
    }
    for (int i = 0; i < 9; ++i)
        all[i] = H[3 * i] * x[0] + H[3 * i + 1] * x[1] + H[3 * i + 2] * x[2];
    for (int i = 0; i < 3; ++i) out[i] = sums(all[3 * i], all[3 * i + 1], all[3 * i + 2]);
}
