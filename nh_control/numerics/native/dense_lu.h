#ifndef NH_DENSE_LU_H
#define NH_DENSE_LU_H
/* LU factors with partial pivoting of small dense matrices, stored row by row: P a = L U (S1 of
 * doc/theory/native_steps.md), Golub and Van Loan (2013), algorithm 3.4.1, with the pivots of
 * LAPACK's dgetrf, counted from 0. Sizes that are constants at the call make loops of constant
 * length. Inner loops run along rows without reductions, so that compilers vectorize them
 * without reordering a sum: the bits do not depend on the processor. */
#include <math.h>
#include <stddef.h>

#if defined(__GNUC__)
#define LU_INLINE __attribute__((always_inline)) static inline
#else
#define LU_INLINE static inline
#endif

/* Factors of a (n, n) in place, with row pivots[k] and row k exchanged in turn; 1 where a is
 * singular or not finite. */
LU_INLINE int lu_factor(int n, double *restrict a, int *restrict pivots)
{
    for (int k = 0; k < n; ++k) {
        double *row = a + (size_t)n * k;
        int p = k;
        for (int i = k + 1; i < n; ++i)
            if (!(fabs(a[(size_t)n * i + k]) <= fabs(a[(size_t)n * p + k]))) p = i;
        pivots[k] = p;
        const double pivot = a[(size_t)n * p + k];
        if (!(fabs(pivot) > 0.0 && fabs(pivot) < INFINITY)) return 1;
        if (p != k)
            for (int j = 0; j < n; ++j) {
                const double t = row[j];
                row[j] = a[(size_t)n * p + j];
                a[(size_t)n * p + j] = t;
            }
        for (int i = k + 1; i < n; ++i) {
            double *restrict other = a + (size_t)n * i;
            if (other[k] == 0.0) continue;
            const double f = other[k] /= pivot;
            for (int j = k + 1; j < n; ++j) other[j] -= f * row[j];
        }
    }
    return 0;
}

/* b (n) becomes the solution of a y = b. */
LU_INLINE void lu_solve(int n, const double *restrict factors, const int *restrict pivots,
                        double *restrict b)
{
    for (int k = 0; k < n; ++k) {
        const double t = b[k];
        b[k] = b[pivots[k]];
        b[pivots[k]] = t;
    }
    for (int i = 1; i < n; ++i)
        for (int k = 0; k < i; ++k) b[i] -= factors[(size_t)n * i + k] * b[k];
    for (int i = n - 1; i >= 0; --i) {
        for (int k = i + 1; k < n; ++k) b[i] -= factors[(size_t)n * i + k] * b[k];
        b[i] /= factors[(size_t)n * i + i];
    }
}

/* b (n) becomes the solution of a^T y = b. */
LU_INLINE void lu_solve_transposed(int n, const double *restrict factors,
                                   const int *restrict pivots, double *restrict b)
{
    for (int k = 0; k < n; ++k) {
        b[k] /= factors[(size_t)n * k + k];
        for (int i = k + 1; i < n; ++i) b[i] -= factors[(size_t)n * k + i] * b[k];
    }
    for (int k = n - 1; k > 0; --k)
        for (int i = 0; i < k; ++i) b[i] -= factors[(size_t)n * k + i] * b[k];
    for (int k = n - 1; k >= 0; --k) {
        const double t = b[k];
        b[k] = b[pivots[k]];
        b[pivots[k]] = t;
    }
}

/* b (n, m) becomes the solution of a y = b; factors that are zero cost nothing. */
LU_INLINE void lu_solve_rows(int n, int m, const double *restrict factors,
                             const int *restrict pivots, double *b)
{
    for (int k = 0; k < n; ++k)
        if (pivots[k] != k)
            for (int j = 0; j < m; ++j) {
                const double t = b[(size_t)m * k + j];
                b[(size_t)m * k + j] = b[(size_t)m * pivots[k] + j];
                b[(size_t)m * pivots[k] + j] = t;
            }
    for (int back = 0; back < 2; ++back)
        for (int step = 0; step < n; ++step) {
            const int i = back ? n - 1 - step : step, end = back ? n : i;
            double *restrict row = b + (size_t)m * i;
            for (int k = back ? i + 1 : 0; k < end; ++k) {
                const double f = factors[(size_t)n * i + k], *restrict other = b + (size_t)m * k;
                if (f != 0.0)
                    for (int j = 0; j < m; ++j) row[j] -= f * other[j];
            }
            if (back)
                for (int j = 0; j < m; ++j) row[j] /= factors[(size_t)n * i + i];
        }
}
#endif
