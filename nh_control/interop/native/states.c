/* States of an exported model from configurations and velocities, and back, by generated
 * functions. */
#include "motion.c"
#include "workspace.h"

int MODEL(state)(const double *q, const double *v, double *x)
{
    const double rest[NU + 1] = {0};
    double x1[NX];
    call_state(q, v, rest, PARAMETERS + NP - 1, PARAMETERS, x1);
    return copy_finite(NX, x1, x);
}

int MODEL(velocity)(const double *x, double *v)
{
    enum { N = NRHO + N_HOLONOMIC };
    double room[N * N + N + NW * N + NW + N + 1], v1[NW + 1];
    const struct motion motion = {
        {function_inertia, 0}, {0, 0},          PARAMETERS, NX, NW, NRHO,
        N_HOLONOMIC,           N - N_REDUNDANT, room,
    };
    if (nh_velocity(&motion, x, v1)) return SINGULAR;
    return copy_finite(NW, v1, v);
}
