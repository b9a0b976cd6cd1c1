#ifndef NH_SYSTEM_H
#define NH_SYSTEM_H
/* A system whose sizes and functions are data, in the array a[SYSTEM] of a workspace. Code that is
 * compiled for one system replaces this file by a text with the same macros:
 * constants, and the functions that CasADi generates (discrete/native_text.py). All matrices are
 * stored row by row. */
#include "definitions.h"
#include "function.h"

/* Rows of a contact: its normal (-1: none), the first of its k tangents, its psi (-1: none). */
struct block {
    int normal, tangent, k, psi;
};

struct system {
    int n_x, n_u, n_p, n_z, n_rank, n_dx, n_columns, n_domain, n_turns;
    int n_first, n_impulses, n_slips, n_contacts;
    const struct block *blocks;
    struct function start, residual, jacobian, readout, terms, contacts, first, second;
};

#define SIZES_ARE_DATA
#define SYSTEM_OF(a) ((const struct system *)(a)[SYSTEM])

#define N_X (system->n_x)       /* numbers of a state */
#define N_U (system->n_u)       /* inputs */
#define N_P (system->n_p)       /* parameters, and the step h */
#define N_Z (system->n_z)       /* unknowns */
#define N_RANK (system->n_rank) /* rank of r_z: N_Z without redundant constraints */
#define N_DX (system->n_dx)     /* rows of A and B */
#define N_COLUMNS                                                                                 \
    (system->n_columns) /* variables of the derivatives: dx, u, all parameters or none */
#define N_DOMAIN (system->n_domain) /* numbers that must be positive after a step */
#define N_TURNS                                                                                   \
    (system->n_turns) /* the last of them, positive for turns of less than half a turn */
#define N_FIRST (system->n_first)       /* unknowns before the impulses of contacts */
#define N_IMPULSES (system->n_impulses) /* impulses x */
#define N_SLIPS (system->n_slips)       /* slip bounds psi */
#define N_CONTACTS (system->n_contacts) /* blocks */
#define BLOCKS (system->blocks)

/* Sizes s of the terms of r in x and u, r and r_z at z = 0. */
static inline void call_start(const struct system *system, const double *x, const double *u,
                              const double *p, double *s, double *r, double *r_z)
{
    const double *const in[] = {x, u, p};
    double *const out[] = {s, r, r_z};
    system->start.call(system->start.self, in, out);
}

static inline void call_residual(const struct system *system, const double *x, const double *u,
                                 const double *z, const double *p, double *r)
{
    call_at(&system->residual, x, u, z, p, r, 0, 0);
}

static inline void call_jacobian(const struct system *system, const double *x, const double *u,
                                 const double *z, const double *p, double *r_z)
{
    call_at(&system->jacobian, x, u, z, p, r_z, 0, 0);
}

/* Sizes s of all terms of r. */
static inline void call_terms(const struct system *system, const double *x, const double *u,
                              const double *z, const double *p, double *s)
{
    call_at(&system->terms, x, u, z, p, s, 0, 0);
}

static inline void call_readout(const struct system *system, const double *x, const double *u,
                                const double *z, const double *p, double *x1, double *domain)
{
    call_at(&system->readout, x, u, z, p, x1, domain, 0);
}

/* Velocities w (N_IMPULSES) that go with the impulses, their derivatives (N_IMPULSES, N_FIRST) by
 * the other unknowns, friction and bounds (2, N_CONTACTS). */
static inline void call_contacts(const struct system *system, const double *x, const double *u,
                                 const double *z, const double *p, double *w, double *w_y,
                                 double *coefficients)
{
    call_at(&system->contacts, x, u, z, p, w, w_y, coefficients);
}

/* Derivatives of the residual r and the next state g by w and z. */
static inline void call_first(const struct system *system, const double *x, const double *u,
                              const double *z, const double *p, const double *x1, double *r_z,
                              double *r_w, double *g_w, double *g_z)
{
    const double *const in[] = {x, u, z, p, x1};
    double *const out[] = {r_z, r_w, g_w, g_z};
    system->first.call(system->first.self, in, out);
}

/* Second derivative F of lam . g - mu . r by (w, z). */
static inline void call_second(const struct system *system, const double *x, const double *u,
                               const double *z, const double *p, const double *x1,
                               const double *lam, const double *mu, double *F)
{
    const double *const in[] = {x, u, z, p, x1, lam, mu};
    double *const out[] = {F};
    system->second.call(system->second.self, in, out);
}

int nh_newton_step(double *const *a);
int nh_contact_step(double *const *a);
#endif
