#ifndef NH_HORIZON_H
#define NH_HORIZON_H
/* The optimal control problem over N steps of a discrete system:
 *
 *     minimize sum_k stage(x_k, u_k, w_k) + terminal(x_N, w_N) + weight . t
 *     subject to local(x_{k+1}, f(x_k, u_k)) = 0,  c(x_k, u_k, w_k) + t - s = 0,  s, t >= 0,
 *                end(x_N) = 0
 *
 * The inequalities c of a node are the N_U lower limits of inputs, the upper ones, N_MIXED rows
 * with inputs, rows of states alone and N_CONSTANT of constants; hard ones have no t. A state x
 * of N_X numbers is a state of the step, of N_STEP_X, with constants behind it: N_FREE parameters
 * that are unknowns, and of periodic motions the first state. Variables of a node are
 * y = (dx, du); matrices are stored row by row. */
#include "definitions.h"
#include "sizes.h"

#include "layout.h"
#include "matrices.h"

#define N_Y (N_DX + N_U)
#define N_I (2 * N_U + N_ROWS)
#define CORRECTION 10 /* times the barrier that a corrector adds to a product at most */
#define MOST_DAMPING 10 /* more, and the model is without curvature: better than 1, 100 */
#define WEIGHT_RANGE 3e5 /* largest weight of a hard row in parts of its least one */
#define END_REGULARIZATION 1e-8 /* of the multipliers of the end condition */

#ifndef INTERNAL
#define INTERNAL
#endif

/* Whether inequality i is one of the constants beside a state, which holds once. */
static inline int is_of_constants(int i) { return i >= N_I - N_CONSTANT; }

/* Whether inequality i holds at node k. */
static inline int holds_at(const struct horizon *o, long k, int i)
{
    if (i < N_U) return k < o->steps && isfinite(o->lower[i]);
    if (i < 2 * N_U) return k < o->steps && isfinite(o->upper[i - N_U]);
    if (i < 2 * N_U + N_MIXED) return k < o->steps;
    if (is_of_constants(i)) return k == o->steps;
    return k > 0 || o->from_first;
}

static inline int is_soft(const struct horizon *o, int i) { return isfinite(o->weight[i]); }

/* The slope of inequality i along (dx, du) at node k. */
static inline double along(const struct horizon *o, long k, int i, const double *dx,
                           const double *du)
{
    if (i < N_U) return du[i];
    if (i < 2 * N_U) return -du[i - N_U];
    const double *row = o->slopes + N_Y * (N_ROWS * k + i - 2 * N_U);
    return dot(N_DX, row, dx) + (k < o->steps ? dot(N_U, row + N_DX, du) : 0.0);
}

/* Where the steps of a trajectory x, u have their unknowns z and ends y. */
struct steps {
    const double *x, *u;
    double *z, *y;
};

/* Work on step k, on the workspace of this horizon; 1 where it fails. */
typedef int (*step_work)(struct horizon *o, const struct steps *s, long k);

/* threads.c */
INTERNAL int at_all_steps(const struct horizon *o, step_work work, const struct steps *s,
                          long *failed_at);
/* horizon.c */
INTERNAL int take_step(struct horizon *o, const struct steps *s, long k);
INTERNAL void inequalities(const struct horizon *o, long k, const double *x, const double *u,
                           double *c);
INTERNAL void read_end(const struct horizon *o, const double *x, double *y);
INTERNAL int solve_step(const struct horizon *o, long k, const double *x, const double *u);
INTERNAL int evaluate(const struct horizon *o, const double *x, const double *u, const double *s,
                      const double *t, double *z, double *y, double *violation, double *merit,
                      double *cost);
INTERNAL int expand(struct horizon *o);
/* riccati.c */
INTERNAL int factorize(struct horizon *o, double damping, int curved);
INTERNAL void substitute(struct horizon *o);
/* slacks.c */
INTERNAL void begin_slacks(struct horizon *o, int warm);
INTERNAL double condense(const struct horizon *o, long k, int i, double *stiffness);
INTERNAL int weigh(struct horizon *o);
INTERNAL void aim(struct horizon *o);
INTERNAL void aim_beyond(struct horizon *o);
INTERNAL void slack_steps(struct horizon *o, double tau, double *primal, double *dual);
INTERNAL void move_slacks(const struct horizon *o, double length, double *s, double *t);
INTERNAL void move_multipliers(struct horizon *o, double costates, double dual);
/* search.c */
INTERNAL void move(const struct horizon *o, double length, double *x, double *u);
INTERNAL int search(struct horizon *o, double tau, double primal, double dual);
/* interior_point.c */
INTERNAL void newton_step(struct horizon *o, int corrected, double tau, double *primal,
                          double *dual);
#endif
