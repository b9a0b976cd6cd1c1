#ifndef NH_OPTIMAL_MATRICES_H
#define NH_OPTIMAL_MATRICES_H
/* Products of small dense matrices, row by row, in an order of sums that does not depend on the
 * processor. */
#include <math.h>
#include <string.h>

/* c (n, m) += a b, four rows of b at a time, so that c is loaded and stored once for them; a(i, k)
 * stands at a[row * i + step * k]. If only the `upper` triangle is needed, row i of c begins at a
 * column near i. */
static inline void multiply(int n, int l, int m, int upper, const double *restrict a, int row,
                            int step, const double *restrict b, double *restrict c)
{
    for (int i = 0; i < n; ++i) {
        double *restrict out = c + m * i;
        const double *f = a + row * i;
        const int first = upper ? i & ~7 : 0;
        int k = 0;
        for (; k + 4 <= l; k += 4) {
            const double f0 = f[step * k], f1 = f[step * (k + 1)];
            const double f2 = f[step * (k + 2)], f3 = f[step * (k + 3)];
            const double *restrict b0 = b + m * k, *restrict b1 = b0 + m;
            const double *restrict b2 = b1 + m, *restrict b3 = b2 + m;
            if (f0 == 0.0 && f1 == 0.0 && f2 == 0.0 && f3 == 0.0) continue;
            for (int j = first; j < m; ++j)
                out[j] += (f0 * b0[j] + f1 * b1[j]) + (f2 * b2[j] + f3 * b3[j]);
        }
        for (; k < l; ++k) {
            const double g = f[step * k], *restrict bk = b + m * k;
            for (int j = first; j < m; ++j) out[j] += g * bk[j];
        }
    }
}

/* out (n) += a y for a (n, m), in eight partial sums */
static inline void times_add(int n, int m, const double *restrict a, const double *restrict y,
                             double *restrict out)
{
    for (int i = 0; i < n; ++i) {
        double sum[8] = {0}, rest = 0.0;
        const double *row = a + m * i;
        int j = 0;
        for (; j + 8 <= m; j += 8)
            for (int l = 0; l < 8; ++l) sum[l] += row[j + l] * y[j + l];
        for (; j < m; ++j) rest += row[j] * y[j];
        out[i] += ((sum[0] + sum[4]) + (sum[1] + sum[5])) +
                  ((sum[2] + sum[6]) + (sum[3] + sum[7])) + rest;
    }
}

/* out (m) += a^T y for a (n, m) */
static inline void transposed_times_add(int n, int m, const double *restrict a,
                                        const double *restrict y, double *restrict out)
{
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; ++j) out[j] += a[m * i + j] * y[i];
}

static inline double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* Lower factor of a (n, n) in place, from its lower triangle; 1 where a is not positive. */
static inline int cholesky(int n, double *restrict a)
{
    for (int j = 0; j < n; ++j) {
        const double size = fabs(a[n * j + j]);
        for (int k = 0; k < j; ++k) a[n * j + j] -= a[n * j + k] * a[n * j + k];
        if (!(a[n * j + j] > 1e-13 * size && a[n * j + j] < INFINITY)) return 1;
        a[n * j + j] = sqrt(a[n * j + j]);
        for (int i = j + 1; i < n; ++i) {
            for (int k = 0; k < j; ++k) a[n * i + j] -= a[n * i + k] * a[n * j + k];
            a[n * i + j] /= a[n * j + j];
        }
    }
    return 0;
}

/* b (n, m) becomes L^-1 b for L (n, n) */
static inline void forward(int n, int m, const double *restrict L, double *restrict b)
{
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k)
            for (int j = 0; j < m; ++j) b[m * i + j] -= L[n * i + k] * b[m * k + j];
        for (int j = 0; j < m; ++j) b[m * i + j] /= L[n * i + i];
    }
}

/* b (n, m) becomes L^-T b */
static inline void backward(int n, int m, const double *restrict L, double *restrict b)
{
    for (int i = n - 1; i >= 0; --i) {
        for (int k = i + 1; k < n; ++k)
            for (int j = 0; j < m; ++j) b[m * i + j] -= L[n * k + i] * b[m * k + j];
        for (int j = 0; j < m; ++j) b[m * i + j] /= L[n * i + i];
    }
}
#endif
