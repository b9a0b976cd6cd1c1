/* Small dense matrices, row by row: LU factors with partial pivoting and what a step and its
 * derivatives do with them. Sizes are constants, N_Z unknowns and N_W variables: compilers make
 * more of small ones. Inner loops run along rows without reductions, so that compilers vectorize
 * them without reordering a sum: the bits do not depend on the processor. Small systems gain
 * nothing from wider registers. */
#include <math.h>
#include <string.h>

#if N_Z >= 8 && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                \
    defined(__GLIBC__)
#define FOR_EVERY_PROCESSOR                                                                       \
    __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_PROCESSOR
#endif

static int all_finite(int n, const double *a)
{
    for (int i = 0; i < n; ++i)
        if (!isfinite(a[i])) return 0;
    return 1;
}

/* Factors of a (n, n) in place, with a[pivots[k]] and a[k] exchanged in turn; 1 where a is
 * singular or not finite. */
FOR_EVERY_PROCESSOR
static int factor(double *restrict a, int *restrict pivots)
{
    enum { n = N_Z };
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
static void substitute(const double *restrict factors, const int *restrict pivots,
                       double *restrict b)
{
    enum { n = N_Z };
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
static void substitute_transposed(const double *restrict factors, const int *restrict pivots,
                                  double *restrict b)
{
    enum { n = N_Z };
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

/* b (n, m) becomes the solution of a y = b. */
FOR_EVERY_PROCESSOR
static void substitute_rows(const double *restrict factors, const int *restrict pivots, double *b)
{
    enum { n = N_Z, m = N_W };
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
