#ifndef NH_SPATIAL_H
#define NH_SPATIAL_H
/* Motions and wrenches of bodies in the linearized equations.
 *
 * A twist is (omega, velocity of the origin), a wrench (torque, force), dual to it; both in the
 * axes of the world, about the origin of the body's frame. In Newton's equation a motion of a body
 * is (turn, domega, dv): its rotation in its own frame and the change of its twist; a wrench dual
 * to it is (gravity torque, angular momentum, linear momentum).
 *
 * In space these are three vectors. In a tree that stays in a plane, whose normal is the world's
 * z, they are one vector of the components (turn_z, omega_z, v_x, v_y). `plane` is a constant
 * wherever it counts, so that the compiler makes both versions. */
#include "vectors.h"

/* A twist (omega, velocity), or a wrench (torque, force). */
struct twist {
    v4 w, v;
};

/* The power of a wrench on a twist. */
INLINE double power(struct twist wrench, struct twist motion)
{
    return sum(wrench.w * motion.w + wrench.v * motion.v);
}

/* Number of vectors, and of components, of a motion. */
INLINE int parts(int plane) { return plane ? 1 : 3; }
INLINE int components(int plane) { return plane ? 4 : 9; }
INLINE double component(const v4 *x, int i, int plane)
{
    return plane ? x[0][i] : x[i / 3][i % 3];
}

/* Bodies turn about the axes from the first rotation axis on to the last, and move along the first
 * `n_translations` of them. */
INLINE int first_rotation_axis(int plane) { return plane ? 2 : 0; }
INLINE int n_translations(int plane) { return plane ? 2 : 3; }

/* The component of axis i of turn (block 0), omega (1) or v (2), and its row of H. */
INLINE int component_index(int block, int i, int plane)
{
    return plane ? block + (block == 2 ? i : 0) : 3 * block + i;
}
INLINE v4 *row_of(v4 *H, int block, int i, int plane)
{
    return H + parts(plane) * component_index(block, i, plane);
}

/* The vectors x of a motion, or of a wrench, of its parts (T35). */
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

/* a . b of a wrench and a motion. */
INLINE double inner(const v4 *a, const v4 *b, int plane)
{
    const v4 c = a[0] * b[0];
    return plane ? (c[0] + c[1]) + (c[2] + c[3]) : sum(c + a[1] * b[1] + a[2] * b[2]);
}

/* x x turn; in the plane without the part that leaves it. */
INLINE v4 cross_turn(v4 x, v4 turn, int plane)
{
    return plane ? SHUFFLE(x, 1, 0, 3, 3) * ((v4){1, -1, 0, 0} * turn[2]) : cross(x, turn);
}

/* The velocity at p of a unit turn in the plane, in the components of a motion. */
INLINE v4 arm(v4 p) { return SHUFFLE(p, 3, 3, 1, 0) * (v4){0, 0, -1, 1}; }

/* y = F x: the motion of a body from its parent's (T10). */
INLINE void motion_to_child(v4 p, const v4 *x, v4 *y, int plane)
{
    for (int c = 0; c < parts(plane); ++c) y[c] = x[c];
    if (plane) y[0] += x[0][1] * arm(p);
    else y[2] -= cross(p, x[1]);
}

/* y = F^T y (T10): a wrench of the body becomes one of the parent, except for the lever
 * of weights. */
INLINE void wrench_to_parent(v4 p, v4 *y, int plane)
{
    if (plane) {
        const v4 zero = {0}, at = arm(p) * y[0];
        y[0] += MIX(at, zero, 4, 2, 4, 4) + MIX(at, zero, 4, 3, 4, 4);
    } else y[1] += cross(p, y[2]);
}

/* x += F^T y. */
INLINE void add_wrench_to_parent(v4 p, const v4 *y, v4 *x, int plane)
{
    v4 moved[3];
    for (int c = 0; c < parts(plane); ++c) moved[c] = y[c];
    wrench_to_parent(p, moved, plane);
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
#endif
