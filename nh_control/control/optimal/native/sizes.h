#ifndef NH_OPTIMAL_SIZES_H
#define NH_OPTIMAL_SIZES_H
/* Written by control/optimal/layout.py: `sizes_header`. Sizes of a `struct horizon` o;
 * where the solver is compiled for a problem, constants take the place of this file. */

#define SIZES_ARE_DATA
#define N_X (o->n_x)
#define N_DX (o->n_dx)
#define N_U (o->n_u)
#define N_Y (o->n_y)
#define N_STEP_X (o->n_step_x)
#define N_STEP_DX (o->n_step_dx)
#define N_PARAMETERS (o->n_parameters)
#define N_COLUMNS (o->n_columns)
#define N_NODE (o->n_node)
#define N_I (o->n_i)
#define N_ROWS (o->n_rows)
#define N_MIXED (o->n_mixed)
#define N_CONSTANT (o->n_constant)
#define N_END (o->n_end)
#endif
