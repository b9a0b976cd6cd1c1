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

/* The extrapolation to the unknowns of substep i from those of the two before it, as mean
 * velocities at the middles of their times, in units of the time between these two (S10). */
static inline double substep_ratio(long long i, const double *f)
{
    return i > 1 ? (f[i] + f[i - 1]) / (f[i - 1] + f[i - 2]) : 0.0;
}

int nh_substeps(const struct stepper *s);
#endif
