#ifndef NH_CONTACT_SIZES_H
#define NH_CONTACT_SIZES_H
/* A contact with one tangent of a system of the size of a pendulum, so that every file here
 * compiles by itself. When a system is compiled its own contacts take the place of this file. */
#define N_FIRST 1    /* unknowns before the impulses */
#define N_IMPULSES 2 /* impulses x */
#define N_SLIPS 1    /* slip bounds psi */
#define N_CONTACTS 1 /* blocks */

/* Rows of a contact: its normal (-1: none), the first of its k tangents, its psi (-1: none). */
static const struct block {
    int normal, tangent, k, psi;
} BLOCKS[N_CONTACTS] = {{0, 1, 1, 0}};

/* Velocities w (N_IMPULSES) that go with the impulses, their derivatives (N_IMPULSES, N_FIRST) by
 * the other unknowns, friction and bounds (2, N_CONTACTS). */
int call_contacts(const double *x, const double *u, const double *z, const double *p, double *w,
                  double *w_y, double *coefficients);
#endif
