#ifndef NH_WORKSPACE_H
#define NH_WORKSPACE_H
/* The memory of a call, and a check of its results. */
#include <math.h>
#include <string.h>

#include "room.h"

/* The room and its list, with the parameters. */
static inline void prepare(struct room *room, double **a)
{
    memset(room, 0, sizeof *room);
    lay_out(room, a);
    memcpy(room->p, PARAMETERS, sizeof PARAMETERS);
}

static inline int are_finite(int n, const double *x)
{
    for (int i = 0; i < n; ++i)
        if (!isfinite(x[i])) return 0;
    return 1;
}

/* Copies n numbers that are all finite; fails without a change if one is not. */
static inline int copy_finite(int n, const double *from, double *to)
{
    if (!are_finite(n, from)) return NOT_FINITE;
    memcpy(to, from, sizeof(double) * (size_t)n);
    return CONVERGED;
}
#endif
