#ifndef NH_OPTIMAL_LAYOUT_H
#define NH_OPTIMAL_LAYOUT_H
/* Written by control/optimal/layout.py: `header`. */

typedef int (*step_routine)(double *const *);
typedef int (*linearize_routine)(step_routine, double *const *);
typedef int (*hessian_routine)(linearize_routine, step_routine, double *const *);

#define FILTER 200
enum outcome { GOES_ON, OPTIMAL, STEP_FAILED, NOT_CONVEX, NO_STEP, INFEASIBLE };

struct horizon {
    long steps; /* N */
    long nz; /* unknowns of a step */
    long curved; /* whether second derivatives of steps and rows count */
    long reuses; /* whether a trial's steps are linearized without being solved again */
    long entries; /* of the filter */
    long failures; /* searches without a step in a row */
    long n_free; /* moves of the first state that are free */
    long from_first; /* whether rows of states hold at the first node, too */
    long failed_at; /* node of the step that failed */
    long threads; /* that share the steps */
    double *const *arrays; /* of a step's workspace */
    double *const *const *workspaces; /* of all threads, this one's first */
    step_routine step; /* x, u, warm z -> z, x1, in the arrays */
    linearize_routine linearize; /* and [A B] */
    hessian_routine hessian; /* and the second derivative contracted with the costate */
    /* (x, dx, p) -> x */
    int (*retract)(const double *, const double *, const double *, double *);
    /* (x0, x1, p) -> dx */
    int (*local)(const double *, const double *, const double *, double *);
    /* (x0, x1) -> slope of local(x0, retract(x1, dx)) at dx = 0 */
    int (*transport)(const double *, const double *, double *);
    /* (x, u, w) -> cost */
    int (*stage)(const double *, const double *, const double *, double *);
    /* (x, w) -> cost */
    int (*terminal)(const double *, const double *, double *);
    /* (x, u, w) -> gradient, Hessian */
    int (*stage_derivatives)(const double *, const double *, const double *, double *, double *);
    /* (x, w) -> gradient, Hessian */
    int (*terminal_derivatives)(const double *, const double *, double *, double *);
    /* (x, u, w) -> values that are to be >= 0 */
    int (*rows)(const double *, const double *, const double *, double *);
    /* (x, u, w) -> (N_ROWS, N_Y) */
    int (*row_slopes)(const double *, const double *, const double *, double *);
    /* (x, u, w, lam) -> (N_Y, N_Y) */
    int (*row_curvature)(const double *, const double *, const double *, const double *, double *);
    /* (x) -> values that are to be 0 at the last node */
    int (*end)(const double *, double *);
    /* (x, nu) -> slope (N_END, N_DX), curvature (N_DX, N_DX) */
    int (*end_derivatives)(const double *, const double *, double *, double *);
    double *x; /* (N + 1, N_X) states */
    double *u; /* (N, N_U) inputs */
    double *w; /* (N + 1, N_NODE) parameters of the nodes */
    double *z; /* (N, nz) unknowns of the steps */
    double *y; /* (N, N_X) ends of the steps */
    double *x_trial;
    double *u_trial;
    double *z_trial;
    double *y_trial;
    double *gap_trial;
    double *c_trial;
    double *e_trial;
    double *lower; /* (N_U) limits of inputs */
    double *upper; /* (N_U) */
    double *weight; /* (N_I) of violation, infinite for a hard row */
    double *least_weight; /* (N_I) of hard rows whose weight may grow, 0 of others */
    double *pi; /* (N, N_DX) costates */
    double *nu; /* (N_END) multipliers at the end */
    double *ab; /* (N, N_DX, N_Y) [A B] */
    double *gap; /* (N, N_DX) local(x_{k+1}, f(x_k, u_k)) + drift */
    double *drift; /* (N_DX) displacement of every step beyond the model's */
    double *drift_next; /* (N_DX) its estimate when the state arrives */
    double *state; /* (N_X) that arrives */
    double *moves; /* (N_DX, n_free) moves of the first state that are free */
    double *places; /* (N_FREE) of the parameters that are unknowns among the step's */
    double *start; /* (N_DX) how far the first state is to move */
    double *g; /* (N, N_Y) gradients of the cost */
    double *h; /* (N, N_Y, N_Y) its Hessians */
    double *g_end; /* (N_DX) */
    double *h_end; /* (N_DX, N_DX), with the curvature of the conditions there */
    double *bend; /* (N, N_Y, N_Y) curvature of steps and rows */
    double *c; /* (N + 1, N_I) values of the inequalities */
    double *slopes; /* (N + 1, N_ROWS, N_Y) of the rows */
    double *e; /* (N_END) values of the end condition */
    double *e_slope; /* (N_END, N_DX) */
    double *dx; /* (N + 1, N_DX) Newton's step */
    double *du; /* (N, N_U) */
    double *pi_next; /* (N, N_DX) */
    double *nu_next; /* (N_END) */
    double *K; /* (N, N_U, N_DX) gains */
    double *feed; /* (N, N_U) feedforward */
    double *L; /* (N, N_U, N_U) factors of the Hessian by the inputs */
    double *P; /* (N, N_DX, N_DX) Hessians of the cost-to-go behind each step */
    double *p; /* (N, N_DX) its gradients */
    double *P_start; /* (N_DX, N_DX) Hessian of the cost-to-go at the first node */
    double *p_start; /* (N_DX) its gradient at the first node */
    double *s; /* (N + 1, N_I) slacks of the inequalities */
    double *t; /* (N + 1, N_I) violations of soft rows */
    double *lam; /* (N + 1, N_I) multipliers */
    double *aim_s; /* (N + 1, N_I) targets of s lam */
    double *aim_t; /* (N + 1, N_I) targets of t (weight - lam) */
    double *ds;
    double *dt;
    double *dl;
    double *s_trial;
    double *t_trial;
    double *total; /* (N + 1, N_Y) sum of the steps of a real-time iteration */
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
