#ifndef NH_MOTION_H
#define NH_MOTION_H
/* Velocities and constraint impulses of states.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "function.h"
#include "vectors.h"

/* Physical parameters p and the functions inertia(x, p) -> M (n, n), b (n), X (nw, n), c (nw) with
 * n = nrho + n_impulses, of which M has `rank`, and, where n_impulses > 0,
 * add_impulses(x, mu, p) -> x1; room for M, b, X, c and 2 n integers. */
struct motion {
    struct function inertia, add_impulses;
    const double *p;
    long long nx, nw, nrho, n_impulses, rank;
    double *room;
};

/* A function of three arguments with one result. */
static inline void call_with(const struct function *f, const double *a, const double *b,
                             const double *c, double *out)
{
    const double *const in[] = {a, b, c};
    double *const results[] = {out};
    f->call(f->self, in, results);
}

int nh_velocity(const struct motion *m, const double *x, double *v);
int nh_with_impulses(const struct motion *m, const double *x, const double *mu, double *x1);
#endif
