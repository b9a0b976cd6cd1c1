/* The dense systems of a tree: of joints of several rates, multipliers, shared coordinates,
 * springs and dampers. All have the factors of dense_lu.h. */
#include "kernel.h"
#include "dense_lu.h"

/* Factors of a (n, n) in place; 1 where it is singular or not finite. */
INTERNAL int factor_dense(double *a, int n, int *pivots) { return lu_factor(n, a, pivots); }

/* b (n) = a^{-1} right, by the factors of a; right may be b. */
INTERNAL void solve_dense(const double *factors, int n, const int *pivots, const double *right,
                          double *b)
{
    if (b != right) memcpy(b, right, sizeof(double) * n);
    if (n == MAX_DOF) lu_solve(MAX_DOF, factors, pivots, b); /* written out by the compiler */
    else lu_solve(n, factors, pivots, b);
}

/* The same for LANES right-hand sides b (n) side by side. */
INTERNAL void solve_dense_columns(const double *factors, int n, const int *pivots, vn *b)
{
    lu_solve_rows(n, LANES, factors, pivots, (double *)b);
}
