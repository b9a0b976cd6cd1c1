/* A step with contacts: Newton's iteration on all equations, from the impulses that an interior
 * point finds.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_path.h"
#include "step_equation.h"

/* Whether a few corrections of Newton's method end with one of round-off: where terms cancel, as
 * in a robot that is symmetric and moves so, sizes of rows do not show their round-off. */
static int corrected(const double *x, const double *u, const double *p, double *z, double *J)
{
    const int ends[] = {0, N_FIRST, N_FIRST + N_IMPULSES, N_Z};
    int pivots[N_Z];
    double dz[N_Z];
    for (int k = 0; k < CONTACT_CORRECTIONS; ++k) {
        call_residual(x, u, z, p, dz);
        call_jacobian(x, u, z, p, J);
        if (factor(J, pivots)) return 0;
        substitute(J, pivots, dz);
        for (int i = 0; i < N_Z; ++i) z[i] -= dz[i];
    }
    for (int kind = 0; kind < 3; ++kind) {
        const int from = ends[kind], n = ends[kind + 1] - from;
        if (!(largest_of(dz + from, n) <= CONTACT_SETTLED * largest_of(z + from, n))) return 0;
    }
    return 1;
}

/* The solution from a start, the routine of newton_step.c, if one has been `found`. Sizes of r's
 * terms are those at the start: gaps are differences of larger numbers. */
static int finished(int found, double *const *a)
{
    const double *x = a[X], *u = a[U], *p = a[P];
    double *z = a[Z], start[N_Z];
    if (!found) return NO_IMPULSES;
    memcpy(start, z, sizeof start);
    call_terms(x, u, z, p, a[SIZES]);
    int status = iterate(0, 1, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    if (may_have_a_solution(status)) {
        memcpy(z, start, sizeof start);
        status = iterate(1, 1, x, u, p, z, a[SIZES], a[INFO], a[R_Z], a[FACTORS]);
    }
    if (may_have_a_solution(status)) {
        memcpy(z, start, sizeof start);
        if (corrected(x, u, p, z, a[FACTORS])) {
            call_jacobian(x, u, z, p, a[R_Z]);
            status = CONVERGED;
        }
    }
    return status == CONVERGED && !is_inside(z) ? NO_IMPULSES : status;
}

/* A step (S6) with contacts: from a guess that is close, from impulses that an interior point
 * finds, else from those at the end of the central path. */
int nh_step(double *const *a)
{
    const double *x = a[X], *u = a[U], *p = a[P];
    const enum start start = (enum start)*a[WARM];
    double *z = a[Z], guess[N_Z] = {0.0};
    if (start != FROM_ZERO) memcpy(guess, z, sizeof guess);
    for (int inside = 1; inside >= 0 && start == FROM_CLOSE; --inside) {
        if (finished(return_to_path(x, u, p, inside, z), a) == CONVERGED) return read_out(a);
        memcpy(z, guess, sizeof guess);
    }
    memcpy(z, guess, sizeof guess);
    a[INFO][0] = 0.0;
    a[INFO][1] = a[INFO][2] = NAN;
    const int first = finished(contact_start(x, u, p, z, a[R_Z]), a);
    if (first == CONVERGED) return read_out(a);
    const int second = finished(follow_path(x, u, p, z, a[R_Z]), a);
    return second == CONVERGED ? read_out(a) : first;
}
