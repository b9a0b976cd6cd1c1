#ifndef NH_IMPULSE_LIBRARY_H
#define NH_IMPULSE_LIBRARY_H
/* A step without its contacts, as the library of impulses asks for it. */
#include "contact_sizes.h"
#include "free_step.h"

#ifndef N_CONTACT_RATES
/* Sizes of the sample in contact_sizes.h, for which every file here compiles by itself. */
#define N_CONTACT_RATES 1 /* unknowns on which velocities of contacts depend */
#define N_TANGENTS 1      /* tangents of a configuration */
#define N_FREE 1          /* those that are not prescribed */
static const int CONTACT_RATES[N_CONTACT_RATES] = {0};
#endif

/* Generated functions (tree_contacts.py): rows (N_IMPULSES, N_TANGENTS) of the impulses;
 * velocities w, their derivatives by the CONTACT_RATES, friction and bounds. */
int call_rows(const double *x, const double *u, const double *z, const double *p, double *J);
int call_velocities(const double *x, const double *u, const double *z, const double *p, double *w,
                    double *by_rates, double *coefficients);

/* Equations that contact_path.h asks for. */
int call_contacts(const double *x, const double *u, const double *z, const double *p, double *w,
                  double *w_y, double *coefficients);
int call_residual(const double *x, const double *u, const double *z, const double *p, double *r);
int call_jacobian(const double *x, const double *u, const double *z, const double *p, double *r_z);
#endif
