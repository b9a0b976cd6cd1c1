/* First derivatives of a step by the implicit function theorem, from
 * first(x, u, z, p, x1) -> r_z, r_w, g_w, g_z, w = (dx, u):
 *
 *     dz = -r_z^{-1} r_w,   AB = g_w + g_z dz   (S7 of doc/theory/native_steps.md). */
#include "linear_algebra.h"

int nh_linearize(int (*step)(double *const *), double *const *a)
{
    const int status = step(a);
    if (status != CONVERGED) return status;
    const struct system *system = SYSTEM_OF(a);
    double *dz = a[DZ];
    call_first(system, a[X], a[U], a[Z], a[P], a[X1], a[R_Z], dz, a[AB], a[G_Z]);
    memcpy(a[FACTORS], a[R_Z], sizeof(double) * N_Z * N_Z);
    if (factor(system, a[FACTORS], (int *)a[PIVOTS])) return SINGULAR;
    for (int i = 0; i < N_Z * N_COLUMNS; ++i) dz[i] = -dz[i];
    substitute_rows(system, a[FACTORS], (const int *)a[PIVOTS], dz);
    multiply_add(N_DX, N_Z, N_COLUMNS, 1.0, a[G_Z], N_Z, dz, a[AB]);
    return all_finite(N_Z * N_COLUMNS, dz) && all_finite(N_DX * N_COLUMNS, a[AB]) ? CONVERGED
                                                                                  : NOT_FINITE;
}
