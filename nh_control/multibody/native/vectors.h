#ifndef NH_VECTORS_H
#define NH_VECTORS_H
/* Vectors of three numbers, in the registers of the processor.
 *
 * A `v4` is three numbers and a zero, so that it fits a vector register. A `vn` has one number of
 * LANES columns of a matrix. All sums are written out: the bits do not depend on the processor. */
#include <math.h>
#include <string.h>

typedef double v4 __attribute__((vector_size(32), aligned(8)));
#ifdef __AVX512F__
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef double vn __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef long long shuffle_indices __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))
/* Functions that several files share: the one compiled unit contains them all as `static`. */
#ifndef INTERNAL
#define INTERNAL
#endif
#ifdef __clang__
#define MIX(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define MIX(a, b, i, j, k, l) __builtin_shuffle(a, b, (shuffle_indices){i, j, k, l})
#endif
#define SHUFFLE(a, i, j, k, l) MIX(a, a, i, j, k, l)

/* A number that is written into a vector in memory would hold up the reading of the vector. */
static const v4 UNITS[3] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};

INLINE v4 vec(double x, double y, double z) { return (v4){x, y, z, 0.0}; }
INLINE v4 load(const double *x) { return vec(x[0], x[1], x[2]); }
INLINE double sum(v4 a) { return a[0] + a[1] + a[2]; }
INLINE double dot(v4 a, v4 b) { return sum(a * b); }

/* The norm |x| + |y| + |z|, with which sizes of terms are bounded. */
INLINE double size_of(v4 a) { return fabs(a[0]) + fabs(a[1]) + fabs(a[2]); }

/* The scalar product of two arrays of n numbers. */
INLINE double product(int n, const double *x, const double *y)
{
    double total = 0.0;
    for (int i = 0; i < n; ++i) total += x[i] * y[i];
    return total;
}

/* y (n) += s x. */
INLINE void add_scaled(int n, double s, const double *x, double *y)
{
    for (int i = 0; i < n; ++i) y[i] += s * x[i];
}

/* The matrix of columns m times x. */
INLINE v4 combine(const v4 *m, v4 x) { return m[0] * x[0] + m[1] * x[1] + m[2] * x[2]; }

INLINE v4 cross(v4 a, v4 b)
{
    const v4 t = a * SHUFFLE(b, 1, 2, 0, 3) - SHUFFLE(a, 1, 2, 0, 3) * b;
    return SHUFFLE(t, 1, 2, 0, 3);
}

/* (sum(a), sum(b), sum(c)). */
INLINE v4 sums(v4 a, v4 b, v4 c)
{
    const v4 zero = {0}, even = MIX(a, b, 0, 4, 2, 6), odd = MIX(a, b, 1, 5, 3, 7);
    return MIX(even, MIX(c, zero, 0, 4, 2, 6), 0, 1, 4, 5) +
           MIX(odd, MIX(c, zero, 1, 5, 3, 7), 0, 1, 4, 5) +
           MIX(even, MIX(c, zero, 2, 6, 2, 6), 2, 3, 4, 5);
}

/* (sum(a), sum(b), sum(c), sum(d)) of all four numbers. */
INLINE v4 sums4(v4 a, v4 b, v4 c, v4 d)
{
    const v4 ab = MIX(a, b, 0, 4, 2, 6) + MIX(a, b, 1, 5, 3, 7),
             cd = MIX(c, d, 0, 4, 2, 6) + MIX(c, d, 1, 5, 3, 7);
    return MIX(ab, cd, 0, 1, 4, 5) + MIX(ab, cd, 2, 3, 6, 7);
}
#endif
