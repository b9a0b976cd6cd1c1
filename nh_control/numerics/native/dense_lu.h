#ifndef NH_DENSE_LU_H
#define NH_DENSE_LU_H
/* LU factors with partial pivoting of small dense matrices, stored row by row: P a = L U (S1 of
 * doc/theory/native_steps.md), Golub and Van Loan (2013), algorithm 3.4.1, with the pivots of
 * LAPACK's dgetrf, counted from 0.
 *
 * A matrix of rank r < n has complete pivoting, P a Q = L U for its first r rows and columns
 * (S1b). Solutions of its consistent equations have zeros at the n - r columns that are left; the
 * rows that are left follow from the others. `pivots` has room for 2 n integers then: exchanges
 * of rows, and of columns.
 *
 * Sizes that are constants at the call make loops of constant length. Inner loops run along rows
 * without reductions, so that compilers vectorize them without reordering a sum: the bits do not
 * depend on the processor. */
#include <math.h>
#include <stddef.h>

#if defined(__GNUC__)
#define LU_INLINE __attribute__((always_inline)) static inline
/* Loops of a small constant length are written out: their numbers stay in registers. */
#define LU_UNROLL _Pragma("GCC unroll 16")
#else
#define LU_INLINE static inline
#define LU_UNROLL
#endif

/* Exchanges the entries k and pivots[k] of b, k = 0 ... n - 1, or backward. */
LU_INLINE void lu_exchange(int n, const int *restrict pivots, int backward, double *restrict b)
{
    for (int step = 0; step < n; ++step) {
        const int k = backward ? n - 1 - step : step;
        const double t = b[k];
        b[k] = b[pivots[k]];
        b[pivots[k]] = t;
    }
}

/* The columns k and `other` of a (n, n) change places. */
LU_INLINE void lu_exchange_columns(int n, int k, int other, double *restrict a)
{
    for (int i = 0; i < n; ++i) {
        double *row = a + (size_t)n * i;
        const double t = row[k];
        row[k] = row[other];
        row[other] = t;
    }
}

/* The largest number of a (n, n) at or behind row and column k: its row, and its column into
 * `column`. */
LU_INLINE int lu_largest(int n, int k, const double *restrict a, int *column)
{
    int p = k;
    *column = k;
    for (int i = k; i < n; ++i)
        for (int j = k; j < n; ++j)
            if (!(fabs(a[(size_t)n * i + j]) <= fabs(a[(size_t)n * p + *column])))
                p = i, *column = j;
    return p;
}

/* Factors of a (n, n) of this rank in place, with row pivots[k] and row k exchanged in turn; 1
 * where the rank is lower or a is not finite. */
LU_INLINE int lu_factor(int n, int rank, double *restrict a, int *restrict pivots)
{
    for (int k = 0; k < rank; ++k) {
        double *row = a + (size_t)n * k;
        int p = k;
        if (rank < n) {
            p = lu_largest(n, k, a, pivots + n + k);
            lu_exchange_columns(n, k, pivots[n + k], a);
        } else
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
    for (int k = rank; k < n; ++k) pivots[k] = pivots[n + k] = k;
    return 0;
}

/* b (n) becomes the solution of a y = b. */
LU_INLINE void lu_solve(int n, int rank, const double *restrict factors,
                        const int *restrict pivots, double *restrict b)
{
    lu_exchange(n, pivots, 0, b);
    LU_UNROLL
    for (int i = 1; i < rank; ++i) {
        double y = b[i];
        LU_UNROLL
        for (int k = 0; k < i; ++k) y -= factors[(size_t)n * i + k] * b[k];
        b[i] = y;
    }
    for (int i = rank; i < n; ++i) b[i] = 0.0;
    LU_UNROLL
    for (int i = rank - 1; i >= 0; --i) {
        double y = b[i];
        LU_UNROLL
        for (int k = rank - 1; k > i; --k) y -= factors[(size_t)n * i + k] * b[k];
        b[i] = y * (1.0 / factors[(size_t)n * i + i]); /* the division does not wait for the sum */
    }
    if (rank < n) lu_exchange(n, pivots + n, 1, b);
}

/* b (n) becomes the solution of a^T y = b. */
LU_INLINE void lu_solve_transposed(int n, int rank, const double *restrict factors,
                                   const int *restrict pivots, double *restrict b)
{
    if (rank < n) lu_exchange(n, pivots + n, 0, b);
    for (int i = rank; i < n; ++i) b[i] = 0.0;
    for (int k = 0; k < rank; ++k) {
        b[k] /= factors[(size_t)n * k + k];
        for (int i = k + 1; i < rank; ++i) b[i] -= factors[(size_t)n * k + i] * b[k];
    }
    for (int k = rank - 1; k > 0; --k)
        for (int i = 0; i < k; ++i) b[i] -= factors[(size_t)n * k + i] * b[k];
    lu_exchange(n, pivots, 1, b);
}

/* Exchanges rows k and pivots[k] of b (n, m), k = 0 ... n - 1, or backward. */
LU_INLINE void lu_exchange_rows(int n, int m, const int *restrict pivots, int backward, double *b)
{
    for (int step = 0; step < n; ++step) {
        const int k = backward ? n - 1 - step : step;
        if (pivots[k] == k) continue;
        for (int j = 0; j < m; ++j) {
            const double t = b[(size_t)m * k + j];
            b[(size_t)m * k + j] = b[(size_t)m * pivots[k] + j];
            b[(size_t)m * pivots[k] + j] = t;
        }
    }
}

/* b (n, m) becomes the solution of a y = b; factors that are zero cost nothing. */
LU_INLINE void lu_solve_rows(int n, int rank, int m, const double *restrict factors,
                             const int *restrict pivots, double *b)
{
    lu_exchange_rows(n, m, pivots, 0, b);
    for (int i = rank; i < n; ++i)
        for (int j = 0; j < m; ++j) b[(size_t)m * i + j] = 0.0;
    for (int back = 0; back < 2; ++back)
        for (int step = 0; step < rank; ++step) {
            const int i = back ? rank - 1 - step : step, end = back ? rank : i;
            double *restrict row = b + (size_t)m * i;
            for (int k = back ? i + 1 : 0; k < end; ++k) {
                const double f = factors[(size_t)n * i + k], *restrict other = b + (size_t)m * k;
                if (f != 0.0)
                    for (int j = 0; j < m; ++j) row[j] -= f * other[j];
            }
            if (back)
                for (int j = 0; j < m; ++j) row[j] /= factors[(size_t)n * i + i];
        }
    if (rank < n) lu_exchange_rows(n, m, pivots + n, 1, b);
}

/* b (n, m) becomes the solution of a^T y = b, for a of full rank. */
LU_INLINE void lu_solve_rows_transposed(int n, int m, const double *restrict factors,
                                        const int *restrict pivots, double *b)
{
    for (int k = 0; k < n; ++k) {
        double *restrict row = b + (size_t)m * k;
        for (int j = 0; j < m; ++j) row[j] /= factors[(size_t)n * k + k];
        for (int i = k + 1; i < n; ++i)
            for (int j = 0; j < m; ++j)
                b[(size_t)m * i + j] -= factors[(size_t)n * k + i] * row[j];
    }
    for (int k = n - 1; k > 0; --k)
        for (int i = 0; i < k; ++i)
            for (int j = 0; j < m; ++j)
                b[(size_t)m * i + j] -= factors[(size_t)n * k + i] * b[(size_t)m * k + j];
    lu_exchange_rows(n, m, pivots, 1, b);
}
#endif
