#ifndef NH_SIMD_H
#define NH_SIMD_H
/* LANES right-hand sides of Newton's equation side by side: spatial.h for columns of derivatives.
 * Equations (T...): doc/tree_kernel.md. */
#include "spatial.h"

/* The scalar product of a wrench's row and LANES motions. */
INLINE vn simd_dot(const v4 *a, const vn *x, int plane)
{
    vn total = a[0][0] * x[0];
    for (int i = 1; i < components(plane); ++i) total += component(a, i, plane) * x[i];
    return total;
}

/* The same, as the sum of three parts that do not wait for each other. */
INLINE vn simd_inner(const v4 *a, const vn *x, int plane)
{
    vn part[3];
    if (plane) return (a[0][0] * x[0] + a[0][1] * x[1]) + (a[0][2] * x[2] + a[0][3] * x[3]);
    for (int i = 0; i < 3; ++i)
        part[i] = a[i][0] * x[3 * i] + a[i][1] * x[3 * i + 1] + a[i][2] * x[3 * i + 2];
    return part[0] + part[1] + part[2];
}

/* y += s a. */
INLINE void simd_add(vn s, const v4 *a, vn *y, int plane)
{
    for (int i = 0; i < components(plane); ++i) y[i] += component(a, i, plane) * s;
}

/* Component i of p x x. */
INLINE vn simd_cross(v4 p, const vn *x, int i)
{
    const int y = (i + 1) % 3, z = (i + 2) % 3;
    return p[y] * x[z] - p[z] * x[y];
}

/* x += F^T y (T10) of LANES wrenches. */
INLINE void simd_inward(v4 p, const vn *y, vn *x, int plane)
{
    for (int i = first_rotation_axis(plane); i < 3; ++i) {
        const int turn = component_index(0, i, plane), rate = component_index(1, i, plane);
        x[turn] += y[turn];
        x[rate] += y[rate] + simd_cross(p, y + component_index(2, 0, plane), i);
    }
    for (int i = component_index(2, 0, plane); i < components(plane); ++i) x[i] += y[i];
}

/* y = F x (T10) of LANES motions. */
INLINE void simd_outward(v4 p, const vn *x, vn *y, int plane)
{
    const int shift = component_index(2, 0, plane);
    for (int i = 0; i < shift; ++i) y[i] = x[i];
    if (plane) {
        y[2] = x[2] - p[1] * x[1];
        y[3] = x[3] + p[0] * x[1];
    } else
        for (int i = 0; i < 3; ++i) y[6 + i] = x[6 + i] - simd_cross(p, x + 3, i);
}

/* The lanes of `count` columns into a row of a matrix, and out of it. */
INLINE void simd_store(double *row, int count, vn x)
{
    if (count == LANES) *(vn *)row = x;
    else
        for (int l = 0; l < count; ++l) row[l] = x[l];
}
INLINE vn simd_load(const double *row, int count)
{
    vn x = {0};
    if (count == LANES) return *(const vn *)row;
    for (int l = 0; l < count; ++l) x[l] = row[l];
    return x;
}

/* Adds the lanes of `count` columns to a row of a matrix. */
INLINE void simd_add_to(double *row, int count, vn x)
{
    for (int l = 0; l < count; ++l) row[l] += x[l];
}
#endif
