/* Second derivative of lam . g + lam_z . z along the solutions of r = 0, from the
 * function second(x, u, z, p, x1, lam, mu) -> F, that of lam . g - mu . r over (w, z):
 *
 *     mu = r_z^{-T} (g_z^T lam + lam_z),   H = P^T F P,   P = [I; dz]
 *
 * (S8, S9 of doc/theory/native_steps.md). */
#include "linear_algebra.h"

int nh_hessian(int (*linearize)(int (*)(double *const *), double *const *),
               int (*step)(double *const *), double *const *a)
{
    const struct system *system = SYSTEM_OF(a);
    const int N = N_COLUMNS + N_Z;
    const int status = linearize(step, a);
    if (status != CONVERGED) return status;
    double *mu = a[MU], *g = a[G], *half = a[HALF], *H = a[HESSIAN], *F = a[FULL];
    const double *lam = a[LAM], *g_z = a[G_Z], *dz = a[DZ];
    memcpy(mu, a[LAM_Z], sizeof(double) * N_Z);
    multiply_add(1, N_DX, N_Z, 1.0, lam, N_DX, g_z, mu);
    substitute_transposed(system, a[FACTORS], (const int *)a[PIVOTS], mu);
    call_second(system, a[X], a[U], a[Z], a[P], a[X1], lam, mu, F);
    /* G = F_zw + F_zz dz / 2;  H = F_ww + dz^T G + G^T dz (S9) */
    for (int i = 0; i < N_Z; ++i)
        memcpy(g + (size_t)N_COLUMNS * i, F + (size_t)N * (N_COLUMNS + i),
               sizeof(double) * N_COLUMNS);
    multiply_add(N_Z, N_Z, N_COLUMNS, 0.5, F + (size_t)N * N_COLUMNS + N_COLUMNS, N, dz, g);
    memset(half, 0, sizeof(double) * N_COLUMNS * N_COLUMNS);
    multiply_transposed_add(N_Z, N_COLUMNS, N_COLUMNS, dz, g, half);
    for (int i = 0; i < N_COLUMNS; ++i)
        for (int j = 0; j < N_COLUMNS; ++j)
            H[(size_t)N_COLUMNS * i + j] = F[(size_t)N * i + j] + half[(size_t)N_COLUMNS * i + j] +
                                           half[(size_t)N_COLUMNS * j + i];
    return all_finite(N_COLUMNS * N_COLUMNS, H) ? CONVERGED : NOT_FINITE;
}
