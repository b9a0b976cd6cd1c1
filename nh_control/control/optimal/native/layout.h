#ifndef NH_OPTIMAL_LAYOUT_H
#define NH_OPTIMAL_LAYOUT_H
/* Written by control/optimal/layout.py: `header`. */
#include "function.h"

typedef int (*step_routine)(double *const *);
typedef int (*linearize_routine)(step_routine, double *const *);
typedef int (*hessian_routine)(linearize_routine, step_routine, double *const *);

#define FILTER 200
#define MIXED 3
#define MAX_THREADS 64
enum outcome { GOES_ON, OPTIMAL, STEP_FAILED, NOT_CONVEX, NO_STEP, INFEASIBLE };

/* The data of each thread. */
struct worker {
    double *const *arrays; /* of a step's workspace */
    double *room; /* scratch memory of n_x + n_i + (n_dx + n_y)^2 numbers */
    struct function retract; /* (x, dx, p) -> x */
    struct function local; /* (x0, x1, p) -> dx */
    struct function transport; /* (x0, x1) -> slope of local(x0, retract(x1, dx)) at dx = 0 */
    struct function stage; /* (x, u, w) -> cost */
    struct function terminal; /* (x, w) -> cost */
    struct function stage_derivatives; /* (x, u, w) -> gradient, Hessian */
    struct function terminal_derivatives; /* (x, w) -> gradient, Hessian */
    struct function rows; /* (x, u, w) -> values, which with `offset` are to be >= 0 */
    struct function row_slopes; /* (x, u, w) -> (n_rows, n_y) */
    struct function row_curvature; /* (x, u, w, lam) -> (n_y, n_y) */
    struct function end; /* (x, goal) -> values that are to be 0 at the last node */
    struct function end_derivatives; /* (x, goal, nu) -> slope (n_end, n_dx), curvature in dx */
};

struct horizon {
    int n_x; /* numbers of a state with its constants */
    int n_dx; /* its local coordinates */
    int n_u; /* inputs */
    int n_y; /* variables (dx, du) of a node */
    int n_step_x; /* numbers of a state of the steps */
    int n_step_dx; /* its local coordinates */
    int n_parameters; /* of the steps that are unknowns */
    int n_columns; /* variables of derivatives: (dx, du), and all parameters with n_parameters */
    int n_node; /* parameters of a node */
    int n_i; /* inequalities: limits of inputs and rows */
    int n_rows; /* rows with inputs, then of states alone, and of constants */
    int n_mixed; /* rows with inputs: at all nodes but the last */
    int n_constant; /* the last rows, of constants: at the last node */
    int n_end; /* conditions at the last node */
    long steps; /* N */
    long nz; /* unknowns of a step */
    long curved; /* whether second derivatives of steps and rows count */
    long reuses; /* whether a trial's steps are linearized without being solved again */
    long entries; /* of the filter */
    long failures; /* consecutive searches without a step */
    long mixed; /* stored changes of steps for mixing, -1 if `newton` is no step before */
    long n_free; /* moves of the first state that are free */
    long from_first; /* whether rows of states also hold at the first node */
    long failed_at; /* node of the step that failed */
    long threads; /* that share the steps */
    const struct worker *workers; /* of all threads, this one's first */
    step_routine step; /* x, u, warm z -> z, x1, in the arrays */
    linearize_routine linearize; /* and [A B] */
    hessian_routine hessian; /* and the second derivative contracted with the costate */
    double *x; /* (N + 1, n_x) states */
    double *u; /* (N, n_u) inputs */
    double *w; /* (N + 1, n_node) parameters of the nodes */
    double *z; /* (N, nz) unknowns of the steps */
    double *y; /* (N, n_x) ends of the steps */
    double *x_trial;
    double *u_trial;
    double *z_trial;
    double *y_trial;
    double *gap_trial;
    double *c_trial;
    double *e_trial;
    double *sizes; /* (nz) of the terms of a step, on which its accuracy depends */
    double *no_input; /* (n_u) zeros */
    double *lower; /* (n_u) limits of inputs */
    double *upper; /* (n_u) */
    double *offset; /* (n_rows) of the rows: their bounds */
    double *goal; /* (n_step_x) state at the end */
    double *weight; /* (n_i) of violation, infinite for a hard row */
    double *least_weight; /* (n_i) of hard rows whose weight may grow, 0 of others */
    double *pi; /* (N, n_dx) costates */
    double *nu; /* (n_end) multipliers at the end */
    double *ab; /* (N, n_dx, n_y) [A B] */
    double *dz; /* (N, nz, n_columns) derivatives of the unknowns */
    double *gap; /* (N, n_dx) local(x_{k+1}, f(x_k, u_k)) + drift */
    double *drift; /* (n_dx) displacement of every step beyond the model's */
    double *drift_next; /* (n_dx) its estimate when the state arrives */
    double *state; /* (n_x) that arrives */
    double *moves; /* (n_dx, n_free) moves of the first state that are free */
    double *places; /* (n_parameters) of the unknown parameters among the step's */
    double *start; /* (n_dx) how far the first state is to move */
    double *g; /* (N, n_y) gradients of the cost */
    double *h; /* (N, n_y, n_y) its Hessians */
    double *g_end; /* (n_dx) */
    double *h_end; /* (n_dx, n_dx), with the curvature of the conditions there */
    double *bend; /* (N, n_y, n_y) curvature of steps and rows */
    double *c; /* (N + 1, n_i) values of the inequalities */
    double *slopes; /* (N + 1, n_rows, n_y) of the rows */
    double *e; /* (n_end) values of the end condition */
    double *e_slope; /* (n_end, n_dx) */
    double *dx; /* (N + 1, n_dx) Newton's step */
    double *du; /* (N, n_u) */
    double *pi_next; /* (N, n_dx) */
    double *nu_next; /* (n_end) */
    double *K; /* (N, n_u, n_dx) gains */
    double *feed; /* (N, n_u) feedforward */
    double *L; /* (N, n_u, n_u) factors of the Hessian with respect to the inputs */
    double *P; /* (N, n_dx, n_dx) Hessians of the cost-to-go behind each step */
    double *p; /* (N, n_dx) its gradients */
    double *P_start; /* (n_dx, n_dx) Hessian of the cost-to-go at the first node */
    double *p_start; /* (n_dx) its gradient at the first node */
    double *s; /* (N + 1, n_i) slacks of the inequalities */
    double *t; /* (N + 1, n_i) violations of soft rows */
    double *lam; /* (N + 1, n_i) multipliers */
    double *aim_s; /* (N + 1, n_i) targets of s lam */
    double *aim_t; /* (N + 1, n_i) targets of t (weight - lam) */
    double *ds;
    double *dt;
    double *dl;
    double *s_trial;
    double *t_trial;
    double *total; /* step that was taken, in real time a sum: (N + 1, n_y), then costates */
    double *newton; /* Newton's step in the same order */
    double *step_changes; /* (MIXED, ...) changes of `newton` between iterates */
    double *point_changes; /* (MIXED, ...) these and those of the iterates */
    double *filter; /* (FILTER, 2) violations and merits */
    double mu; /* barrier */
    double mu_end; /* its last value */
    double tolerance; /* of the errors at the optimum */
    double damping; /* added to the Hessian */
    double last_damping; /* that made it convex */
    double widest; /* violation that a trial may have */
    double narrow; /* violation below which the merit must decrease */
    double violation; /* 1-norm of gaps and residuals */
    double cost; /* without barrier and weights */
    double merit; /* barrier function */
    double stationarity; /* largest error of the Lagrangian's gradient */
    double complementarity; /* largest product of slack and multiplier */
    double length; /* of the last step */
};
#endif
