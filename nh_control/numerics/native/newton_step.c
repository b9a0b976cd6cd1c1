/* A step: Newton's iteration from a guess, from zero and, patiently, once more.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "step_equation.h"

/* The usual attempt. */
static int newton(int warm, const double *x, const double *u, const double *p, double *z,
                  double *fixed, double *info, double *J, double *factors)
{
    return iterate(0, warm, x, u, p, z, fixed, info, J, factors);
}

/* A second attempt, with (S4) and (S5). */
SELDOM static int patient_newton(const double *x, const double *u, const double *p, double *z,
                                 double *fixed, double *info, double *J, double *factors)
{
    return iterate(1, 0, x, u, p, z, fixed, info, J, factors);
}

/* A step (S6). Every routine takes the list of arrays and returns a status; its results are
 * among the arrays. A step with a[WARM] not zero starts at the guess in a[Z], and at zero only
 * if that fails. */
int nh_step(double *const *a)
{
    const double *x = a[X], *u = a[U], *p = a[P];
    double *z = a[Z];
    int status = CONVERGED;
    if (N_Z && *a[WARM] != 0.0)
        status = newton(1, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    if (N_Z && (*a[WARM] == 0.0 || status != CONVERGED))
        status = newton(0, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    if (may_have_a_solution(status))
        status = patient_newton(x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    return status == CONVERGED ? read_out(a) : status;
}
