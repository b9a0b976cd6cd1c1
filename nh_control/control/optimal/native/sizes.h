#ifndef NH_OPTIMAL_SIZES_H
#define NH_OPTIMAL_SIZES_H
/* Sizes of a pendulum's problem with a free step length, so that every file here compiles by
 * itself. When a problem is compiled its own sizes take the place of this file. */
#define N_STEP_X 2   /* numbers of a state of the steps */
#define N_STEP_DX 2  /* its local coordinates */
#define N_FREE 1     /* parameters that are unknowns */
#define N_X 3        /* numbers of a state with its constants */
#define N_DX 3       /* its local coordinates */
#define N_U 1        /* inputs */
#define N_COLUMNS 8  /* variables of derivatives: (dx, du), and all parameters with N_FREE */
#define N_NODE 3     /* parameters of a node */
#define N_MIXED 1    /* rows with inputs: at all nodes but the last */
#define N_ROWS 3     /* and rows of states alone: at all nodes but the first, */
#define N_CONSTANT 1 /* and the last of them, of constants: at the last node */
#define N_END 1      /* conditions at the last node */
#endif
