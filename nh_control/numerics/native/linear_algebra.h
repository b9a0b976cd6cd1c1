#ifndef NH_LINEAR_ALGEBRA_H
#define NH_LINEAR_ALGEBRA_H
/* The dense matrices of a step and its derivatives, row by row, for N_Z unknowns and N_COLUMNS
 * variables of the derivatives. Where these are constants, compilers generate faster code;
 * small systems gain nothing from wider registers, and the library is built for each of them. */
#include <math.h>
#include <string.h>

#include "dense_lu.h"
#include "system.h"

#define FOR_EVERY_PROCESSOR __attribute__((unused))
#ifndef SIZES_ARE_DATA
#if N_Z >= 8 && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                \
    defined(__GLIBC__)
#undef FOR_EVERY_PROCESSOR
#define FOR_EVERY_PROCESSOR                                                                       \
    __attribute__((unused, optimize("O3"), target_clones("avx512f", "avx2", "default")))
#endif
#endif

__attribute__((unused)) static int all_finite(int n, const double *a)
{
    for (int i = 0; i < n; ++i)
        if (!isfinite(a[i])) return 0;
    return 1;
}

/* Factors of a (N_Z, N_Z) in place; 1 where a is singular or not finite. */
FOR_EVERY_PROCESSOR
static int factor(const struct system *system, double *restrict a, int *restrict pivots)
{
    (void)system;
    return lu_factor(N_Z, N_RANK, a, pivots);
}

/* b (N_Z) becomes the solution of a y = b. */
__attribute__((unused)) static void substitute(const struct system *system,
                                               const double *restrict factors,
                                               const int *restrict pivots, double *restrict b)
{
    (void)system;
    lu_solve(N_Z, N_RANK, factors, pivots, b);
}

/* b (N_Z) becomes the solution of a^T y = b. */
__attribute__((unused)) static void substitute_transposed(const struct system *system,
                                                          const double *restrict factors,
                                                          const int *restrict pivots,
                                                          double *restrict b)
{
    (void)system;
    lu_solve_transposed(N_Z, N_RANK, factors, pivots, b);
}

/* b (N_Z, N_COLUMNS) becomes the solution of a y = b. */
FOR_EVERY_PROCESSOR
static void substitute_rows(const struct system *system, const double *restrict factors,
                            const int *restrict pivots, double *b)
{
    (void)system;
    lu_solve_rows(N_Z, N_RANK, N_COLUMNS, factors, pivots, b);
}

/* c (n, m) += s a b for a (n, l) with row length `la`, b (l, m); entries of a that are zero cost
 * nothing. */
FOR_EVERY_PROCESSOR
static void multiply_add(int n, int l, int m, double s, const double *restrict a, int la,
                         const double *restrict b, double *restrict c)
{
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < l; ++k) {
            const double f = s * a[(size_t)la * i + k];
            if (f != 0.0)
                for (int j = 0; j < m; ++j) c[(size_t)m * i + j] += f * b[(size_t)m * k + j];
        }
}

/* c (n, m) += a^T b for a (l, n), b (l, m); entries of a that are zero cost nothing. */
FOR_EVERY_PROCESSOR
static void multiply_transposed_add(int l, int n, int m, const double *restrict a,
                                    const double *restrict b, double *restrict c)
{
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < l; ++k) {
            const double f = a[(size_t)n * k + i];
            if (f != 0.0)
                for (int j = 0; j < m; ++j) c[(size_t)m * i + j] += f * b[(size_t)m * k + j];
        }
}
#endif
