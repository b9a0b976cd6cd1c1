#ifndef NH_OPTIMAL_SIZES_H
#define NH_OPTIMAL_SIZES_H
/* Sizes of a pendulum's problem, so that every file here compiles by itself. When a problem is
 * compiled its own sizes take the place of this file. */
#define N_X 2     /* numbers of a state */
#define N_DX 2    /* local coordinates of a state */
#define N_U 1     /* inputs */
#define N_NODE 3  /* parameters of a node */
#define N_MIXED 1 /* rows with inputs: at all nodes but the last */
#define N_ROWS 2  /* and rows of states alone: at all nodes but the first */
#define N_END 1   /* conditions at the last node */
#endif
