#ifndef NH_SYSTEM_H
#define NH_SYSTEM_H
/* A system of the size of a pendulum, so that every file here compiles by itself. When a system is
 * compiled its own sizes take the place of this file, behind its functions, which CasADi
 * generates. All matrices are stored row by row. */
#include "definitions.h"

#define N_X 2       /* numbers of a state */
#define N_U 1       /* inputs */
#define N_P 1       /* parameters, and the step h */
#define N_Z 1       /* unknowns */
#define N_DX 2      /* rows of A and B */
#define N_COLUMNS 3 /* variables of the derivatives: dx, u, and parameters if asked for */
#define N_DOMAIN 1  /* numbers that must be positive after a step */
#define N_TURNS 0   /* the last of them, which say that no turn was half one or more */

/* Sizes s of the terms of r in x and u, r and r_z at z = 0. */
int call_start(const double *x, const double *u, const double *p, double *s, double *r,
               double *r_z);
int call_residual(const double *x, const double *u, const double *z, const double *p, double *r);
int call_jacobian(const double *x, const double *u, const double *z, const double *p, double *r_z);
/* Sizes s of all terms of r. */
int call_terms(const double *x, const double *u, const double *z, const double *p, double *s);
int call_readout(const double *x, const double *u, const double *z, const double *p, double *x1,
                 double *domain);
/* Derivatives of the residual r and the next state g by w and z. */
int call_first(const double *x, const double *u, const double *z, const double *p,
               const double *x1, double *r_z, double *r_w, double *g_w, double *g_z);
/* Second derivative F of lam . g - mu . r by (w, z). */
int call_second(const double *x, const double *u, const double *z, const double *p,
                const double *x1, const double *lam, const double *mu, double *F);

int nh_step(double *const *a);
#endif
