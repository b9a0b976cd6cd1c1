#ifndef NH_FREE_STEP_H
#define NH_FREE_STEP_H
/* Contacts of a step that is not one of generated functions (impulse_library.c). */
#include <stdint.h>

#include "function.h"

struct system;
struct free_step;

/* Some contacts of a step: whether each is `near`, and those that are as a problem of their own,
 * with the places of its impulses, slip bounds and contacts among all. `part` has PART_ROOM. */
struct contact_set {
    int n_impulses, n_slips, n_contacts;
    int *near, *impulses, *slips, *contacts;
    struct system *part;
};
#define PART_ROOM(n_contacts) (32 + 2 * (n_contacts))

/* Functions of x, u, z, p (tree_contacts.py): rows J (N_IMPULSES, n_tangents) of the impulses;
 * values w, their derivatives by the unknowns `rates`, friction and bounds; derivatives of w
 * by the variables, and of the impulses' forces by q. Then the routines of impulse_library.c, and
 * for them `sizes`: n_z, n_p and those of the contacts. */
struct contact_functions {
    struct function rows, values, derivatives;
    int (*find)(const struct system *, const double *, const double *, const double *, double,
                double *, double *);
    int (*settle)(const struct system *, const double *, const double *, const double *, double,
                  double *, double *);
    int (*is_inside)(const struct system *, const double *);
    void (*equations)(const struct system *, const double *, const double *, const double *,
                      double *, double *);
    int (*add_near)(const struct system *, const double *, const double *, double,
                    struct contact_set *);
    int (*gap_impulses)(const struct system *, const double *, double, double *);
    void (*far_impulses)(const struct system *, const int *, const double *, const double *,
                         double, double *, double *);
    int (*follow_path)(const struct free_step *, const double *, const double *, const double *,
                       int, double *);
    const struct system *sizes;
};

/* A step whose equations without contacts are r (N_FIRST) at unknowns, and r_y (N_FIRST, N_FIRST)
 * where it is not NULL. The first `n_free` of the tangents are not prescribed. `room`: that of the
 * routine of this name. */
struct free_step {
    const struct contact_functions *contacts;
    int n_tangents, n_free, n_rates;
    const int32_t *rates;
    double *room;
    void (*equations)(const void *tree, const double *z, double *r, double *r_y);
    const void *tree;
};
#endif
