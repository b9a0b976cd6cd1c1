/* A step with contacts: Newton's iteration on all equations, from the impulses that an interior
 * point finds.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_step.h"
#include "step_equation.h"

/* A step (S6) with contacts, the routine of newton_step.c. Sizes of r's terms are those at the
 * start: gaps are differences of larger numbers. */
int nh_step(double *const *a)
{
    const double *x = a[X], *u = a[U], *p = a[P];
    double *z = a[Z], start[N_Z];
    if (*a[WARM] == 0.0) memset(z, 0, sizeof start);
    a[INFO][0] = 0.0;
    a[INFO][1] = a[INFO][2] = NAN;
    if (!contact_start(x, u, p, z, a[R_Z])) return NO_IMPULSES;
    memcpy(start, z, sizeof start);
    call_terms(x, u, z, p, a[SIZES]);
    int status = iterate(0, 1, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    if (may_have_a_solution(status)) {
        memcpy(z, start, sizeof start);
        status = iterate(1, 1, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    }
    if (status != CONVERGED) return status;
    return is_inside(z) ? read_out(a) : NO_IMPULSES;
}
