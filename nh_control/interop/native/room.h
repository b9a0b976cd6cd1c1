#ifndef NH_ROOM_H
#define NH_ROOM_H
/* A model with the sizes of a pendulum, so that every file here compiles by itself. When a model
 * is exported, its sizes and numbers replace this file (interop/c_code.py). */
#include "definitions.h"

#define MODEL(name) pendulum_##name /* the public name of a function */

#define STEP nh_newton_step
#define LINEARIZE nh_linearize

enum { NX = 2, NU = 1, NP = 1, NZ = 1, NDX = 2, NY = 1, NE = 1, N_ARRAYS = ROOM + 1 };
enum { NQ = 1, NV = 1, NW = 1, NRHO = 1, N_HOLONOMIC = 0, N_REDUNDANT = 0 };

/* The arrays of a step, on the stack of the caller. */
struct room {
    double x[NX], u[1], p[NP], z[1], x1[NX], warm[1], sizes[1], info[3], r_z[1], factors[1];
    int pivots[1];
    double dz[3], ab[6], g_z[2], room[12], rest[NX + 3 * NZ];
};

/* Parameters and the step h, and the fractions of h that substeps take. */
static const double PARAMETERS[NP] = {0.1};
static const double FRACTIONS[] = {1.0};

/* The list of the arrays. */
static void lay_out(struct room *room, double **a)
{
    a[X] = room->x, a[U] = room->u, a[P] = room->p, a[Z] = room->z, a[X1] = room->x1;
    a[WARM] = room->warm, a[SIZES] = room->sizes, a[INFO] = room->info, a[R_Z] = room->r_z;
    a[FACTORS] = room->factors, a[PIVOTS] = (double *)room->pivots, a[DZ] = room->dz;
    a[AB] = room->ab, a[G_Z] = room->g_z, a[ROOM] = room->room;
}

/* Generated functions of states: local(x0, x1), retract(x, dx), the state of q and v under u over
 * a step h, and the inertia of motion.h; of the measurement: its value, its innovation (NE) with
 * the Jacobian H (NE, NDX), and an estimate moved by dx with the matrix (NDX, NDX) that carries
 * errors there. */
int call_local(const double *x0, const double *x1, double *dx);
int call_retract(const double *x, const double *dx, double *x1);
int call_state(const double *q, const double *v, const double *u, const double *h, const double *p,
               double *x);
int function_inertia(const void *self, const double *const *in, double *const *out);
int call_measure(const double *x, double *y);
int call_innovation(const double *x, const double *y, double *e, double *H);
int call_correct(const double *x, const double *dx, double *x1, double *transform);

/* model.c */
int MODEL(step)(const double *x, const double *u, double *x1);
int MODEL(linearize)(const double *x, const double *u, double *x1, double *A, double *B);
void MODEL(retract)(const double *x, const double *dx, double *x1);

int nh_newton_step(double *const *a);
int nh_linearize(int (*step)(double *const *), double *const *a);

/* The kernel's states of trees, 0 on success. */
int tree_state(double *const *a);
int tree_velocity(double *const *a);

/* The reference (STEPS of it, and its last state), the gains of a tracker, and those of its
 * disturbance estimate. */
enum { STEPS = 1, HOLD = 1, N_PRESCRIBED = 0 };
static const double TARGETS[] = {0.0, 0.0, 0.0, 0.0};
static const double FEEDFORWARD[] = {0.0};
static const double GAINS[] = {1.0, 1.0};
static const double LIMITS[] = {-1.0, 1.0};
static const double DISTURBANCE_GAIN = 0.2;
static const double DISTURBANCE_GAINS[] = {1.0};
#endif
