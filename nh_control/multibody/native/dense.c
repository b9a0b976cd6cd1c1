/* The dense systems of a tree: of joints of several rates, multipliers, shared coordinates,
 * springs and dampers. All have the factors of dense_lu.h. */
#include "kernel.h"
#include "dense_lu.h"

/* Factors of a (n, n) of a rank in place; 1 where its rank is lower or it is not finite. */
INTERNAL int factor_dense(double *a, int n, int rank, int *pivots)
{
    if (n == MAX_DOF && rank == n) /* written out by the compiler */
        return lu_factor(MAX_DOF, MAX_DOF, a, pivots);
    return lu_factor(n, rank, a, pivots);
}

/* b (n) = a^{-1} right, by the factors of a; right may be b. */
INTERNAL void solve_dense(const double *factors, int n, int rank, const int *pivots,
                          const double *right, double *b)
{
    if (b != right) memcpy(b, right, sizeof(double) * n);
    if (n == MAX_DOF && rank == n) lu_solve(MAX_DOF, MAX_DOF, factors, pivots, b);
    else lu_solve(n, rank, factors, pivots, b);
}

/* LANES right-hand sides b (MAX_DOF), `stride` apart, become their solutions: lu_solve_rows in
 * registers. */
INTERNAL void solve_joint_columns(const double *factors, const int *pivots, int stride, vn *b)
{
    vn y[MAX_DOF];
    for (int k = 0; k < MAX_DOF; ++k) {
        const vn t = b[stride * k];
        b[stride * k] = b[stride * pivots[k]];
        b[stride * pivots[k]] = t;
    }
    LU_UNROLL
    for (int i = 0; i < MAX_DOF; ++i) {
        y[i] = b[stride * i];
        LU_UNROLL
        for (int k = 0; k < i; ++k) y[i] -= factors[MAX_DOF * i + k] * y[k];
    }
    LU_UNROLL
    for (int i = MAX_DOF - 1; i >= 0; --i) {
        LU_UNROLL
        for (int k = i + 1; k < MAX_DOF; ++k) y[i] -= factors[MAX_DOF * i + k] * y[k];
        b[stride * i] = y[i] /= factors[MAX_DOF * i + i];
    }
}

/* The same for LANES right-hand sides b (n) side by side. */
INTERNAL void solve_dense_columns(const double *factors, int n, int rank, const int *pivots, vn *b)
{
    if (n == MAX_DOF && rank == n) solve_joint_columns(factors, pivots, 1, b);
    else lu_solve_rows(n, rank, LANES, factors, pivots, (double *)b);
}

/* The solutions of a^T y = b for LANES right-hand sides, of a with full rank. */
INTERNAL void solve_transposed_columns(const double *factors, int n, const int *pivots, vn *b)
{
    lu_solve_rows_transposed(n, LANES, factors, pivots, (double *)b);
}

/* Rows `at` of a matrix, `count` right-hand sides in every column, become their solutions; with
 * room for c (count). */
INTERNAL void solve_columns(int count, int rank, const int *at, const double *factors,
                            const int *order, int stride, double *rows, vn *c)
{
    for (int k = 0; k < stride; k += LANES) {
        const int lanes = stride - k < LANES ? stride - k : LANES;
        for (int r = 0; r < count; ++r) c[r] = simd_load(rows + (size_t)stride * at[r] + k, lanes);
        solve_dense_columns(factors, count, rank, order, c);
        for (int r = 0; r < count; ++r) simd_store(rows + (size_t)stride * at[r] + k, lanes, c[r]);
    }
}

/* y (n) += s_r x_r, a sum over the `count` rows `at` of x, of length n. */
INTERNAL void add_rows(int count, const double *s, const int *at, const double *x, int n,
                       double *y)
{
    int k = 0;
    for (; k + LANES <= n; k += LANES) {
        vn total = simd_load(y + k, LANES);
        for (int r = 0; r < count; ++r)
            total += s[r] * simd_load(x + (size_t)n * at[r] + k, LANES);
        simd_store(y + k, LANES, total);
    }
    for (; k < n; ++k)
        for (int r = 0; r < count; ++r) y[k] += s[r] * x[(size_t)n * at[r] + k];
}
