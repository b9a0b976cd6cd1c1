#ifndef NH_MOTION_H
#define NH_MOTION_H
/* Velocities and constraint impulses of states.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "vectors.h"

/* Physical parameters p and the function inertia(x, p) -> M (n, n), b (n), X (nw, n), c (nw) with
 * n = nrho + n_impulses; room for these and a copy of M. */
struct motion {
    int (*inertia)(const double *x, const double *p, double *mass, double *momentum, double *basis,
                   double *prescribed);
    const double *p;
    long long nx, nq, nw, nrho, n_impulses;
    double *room;
};

int nh_velocity(const struct motion *m, const double *x, double *v);
int nh_with_impulses(const struct motion *m, const double *x, const double *mu, double *x1);
#endif
