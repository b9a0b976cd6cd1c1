#ifndef NH_STEPPER_H
#define NH_STEPPER_H
/* Whole steps and trajectories of any system, whose sizes are data here.
 *
 * Equations (S...): doc/theory/native_steps.md. */

/* A step x1 = f(x, u) of length *h by n fractions of it, on the arrays of a workspace, x, u, h, z,
 * x1 and warm among them; `n_prescribed` coordinates are prescribed. Room for nx + 3 nz numbers.
 */
struct stepper {
    int (*step)(double *const *arrays);
    double *const *arrays;
    const double *fractions;
    double *x, *u, *h, *z, *x1, *warm, *room;
    long long n, nx, nu, nz, nq, n_prescribed;
};

int nh_substeps(const struct stepper *s);
#endif
