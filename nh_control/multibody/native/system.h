#ifndef NH_TREE_SYSTEM_H
#define NH_TREE_SYSTEM_H
/* Sizes of the system that simulate.c steps, from the model in a list of arrays `a`. */
#include "tree_data.h"

#define TREE_OF(a) ((const struct tree_header *)(a)[TREE])
#define N_X (TREE_OF(a)->nq + TREE_OF(a)->nv)
#define N_U (TREE_OF(a)->n_inputs)
#define N_Z                                                                                       \
    (TREE_OF(a)->n_free + TREE_OF(a)->n_constraints + TREE_OF(a)->n_impulses + TREE_OF(a)->n_slips)
#define N_P (TREE_OF(a)->n_parameters)

int nh_step(double *const *a);
#endif
