/* States of an exported tree of bodies from configurations and velocities, and back, by the
 * kernel. */
#include "workspace.h"

int MODEL(state)(const double *q, const double *v, double *x)
{
    struct room room;
    double *a[N_ARRAYS] = {0};
    prepare(&room, a);
    memcpy(a[X], q, sizeof(double) * NQ);
    memcpy(a[Z], v, sizeof(double) * NW);
    if (tree_state(a)) return SINGULAR;
    memcpy(a[X1], q, sizeof(double) * NQ);
    return copy_finite(NX, a[X1], x);
}

int MODEL(velocity)(const double *x, double *v)
{
    struct room room;
    double *a[N_ARRAYS] = {0};
    prepare(&room, a);
    memcpy(a[X], x, sizeof(double) * NX);
    if (tree_velocity(a)) return SINGULAR;
    return copy_finite(NW, a[Z], v);
}
