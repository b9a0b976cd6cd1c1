/* A step: Newton's iteration from a guess, from zero and, patiently, once more.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "step_equation.h"

/* The usual attempt. */
static int newton(const struct system *system, double *const *a, enum start begin, double *room)
{
    return iterate(system, a, 0, begin, room);
}

/* A second attempt, with (S4) and (S5). */
SELDOM static int patient_newton(const struct system *system, double *const *a, double *room)
{
    return iterate(system, a, 1, FROM_ZERO, room);
}

/* A step (S6). Every routine takes the list of arrays and returns a status; its results are
 * among the arrays. A step with a[WARM] not zero starts at the guess in a[Z], and at zero only
 * if that fails. */
int nh_newton_step(double *const *a)
{
    const struct system *system = SYSTEM_OF(a);
    STEP_ROOM_OF(room, a);
    const enum start begin = (enum start)*a[WARM];
    int status = CONVERGED;
    if (N_Z) status = newton(system, a, begin, room);
    if (status != CONVERGED && begin != FROM_ZERO) status = newton(system, a, FROM_ZERO, room);
    if (may_have_a_solution(status)) status = patient_newton(system, a, room);
    return status == CONVERGED ? read_out(system, a, room + 11 * N_Z) : status;
}
