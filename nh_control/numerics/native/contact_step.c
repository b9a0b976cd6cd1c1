/* A step with contacts: Newton's iteration on all equations, from the impulses that an interior
 * point finds.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_path.h"
#include "step_equation.h"

/* Numbers of room that a step with contacts takes: guess and start, and its parts. */
#define CONTACT_STEP_ROOM (2 * N_Z + STEP_ROOM + START_ROOM + PATH_ROOM + 2 * N_PATH)

/* Whether a few corrections of Newton's method end with one of round-off: where terms cancel, as
 * in a symmetric motion of a symmetric robot, sizes of rows do not show their round-off. */
static int corrected(const struct system *system, double *const *a, double *dz)
{
    const int ends[] = {0, N_FIRST, N_FIRST + N_IMPULSES, N_Z};
    double *z = a[Z], *J = a[FACTORS];
    int *pivots = (int *)a[PIVOTS];
    for (int k = 0; k < CONTACT_CORRECTIONS; ++k) {
        call_residual(system, a[X], a[U], z, a[P], dz);
        call_jacobian(system, a[X], a[U], z, a[P], J);
        if (factor(system, J, pivots)) return 0;
        substitute(system, J, pivots, dz);
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
static int finished(const struct system *system, int found, double *const *a, double *room)
{
    double *z = a[Z], *start = take(&room, N_Z);
    if (!found) return NO_IMPULSES;
    memcpy(start, z, sizeof(double) * N_Z);
    call_terms(system, a[X], a[U], z, a[P], a[SIZES]);
    int status = iterate(system, a, 0, 1, room);
    if (may_have_a_solution(status)) {
        memcpy(z, start, sizeof(double) * N_Z);
        status = iterate(system, a, 1, 1, room);
    }
    if (may_have_a_solution(status)) {
        memcpy(z, start, sizeof(double) * N_Z);
        if (corrected(system, a, room)) {
            call_jacobian(system, a[X], a[U], z, a[P], a[R_Z]);
            status = CONVERGED;
        }
    }
    return status == CONVERGED && !is_inside(system, z) ? NO_IMPULSES : status;
}

/* A step (S6) with contacts: from a guess that is close, from impulses that an interior point
 * finds, else from those at the end of the central path. */
int nh_contact_step(double *const *a)
{
    const struct system *system = SYSTEM_OF(a);
    const double *x = a[X], *u = a[U], *p = a[P];
    const enum start start = (enum start)a[WARM][0];
    double *room = a[ROOM], *z = a[Z], *guess = take(&room, N_Z);
    memset(guess, 0, sizeof(double) * N_Z);
    if (start != FROM_ZERO) memcpy(guess, z, sizeof(double) * N_Z);
    for (int inside = 1; inside >= 0 && start == FROM_CLOSE; --inside) {
        const int found = return_to_path(system, x, u, p, inside, z, room);
        if (finished(system, found, a, room) == CONVERGED) return read_out(system, a, room);
        memcpy(z, guess, sizeof(double) * N_Z);
    }
    memcpy(z, guess, sizeof(double) * N_Z);
    a[INFO][0] = 0.0;
    a[INFO][1] = a[INFO][2] = NAN;
    const int first = finished(system, contact_start(system, x, u, p, z, a[R_Z], room), a, room);
    if (first == CONVERGED) return read_out(system, a, room);
    const int second = finished(system, follow_path(system, x, u, p, z, a[R_Z], room), a, room);
    return second == CONVERGED ? read_out(system, a, room) : first;
}

/* Numbers of a[ROOM] for a system. */
long long nh_room(const struct system *system)
{
    return (long long)(N_CONTACTS ? CONTACT_STEP_ROOM : STEP_ROOM);
}
