#ifndef NH_HORIZON_H
#define NH_HORIZON_H
/* The optimal control problem over N steps of a discrete system:
 *
 *     minimize sum_k stage(x_k, u_k, w_k) + terminal(x_N, w_N) + weight . t
 *     subject to local(x_{k+1}, f(x_k, u_k)) = 0,  c(x_k, u_k, w_k) + t - s = 0,  s, t >= 0,
 *                end(x_N) = 0
 *
 * The inequalities c of a node are the n_u lower limits of inputs, the upper ones, n_mixed rows
 * with inputs, rows of states alone and n_constant of constants; hard ones have no t. A state x
 * of n_x numbers is a state of the step, of n_step_x, with constants behind it: n_parameters
 * that are unknowns, and of periodic motions the first state. Variables of a node are
 * y = (dx, du); matrices are stored row by row. */
#include "definitions.h"
#include "layout.h"
#include "matrices.h"
#include "sizes.h"

#define CORRECTION 10           /* times the barrier that a corrector adds to a product at most */
#define MOST_DAMPING 10         /* above it the model has no curvature; better than 1 or 100 */
#define TURNED_BACK 0.7         /* cosine, negative, of two steps beyond which lengths shrink */
#define WEIGHT_RANGE 3e5        /* largest weight of a hard row, relative to its least one */
#define END_REGULARIZATION 1e-8 /* of the multipliers of the end condition */

/* Scratch memory of a thread, by this name. */
#ifdef SIZES_ARE_DATA
#define ROOM_OF(name, worker) double *name = (worker)->room
#else /* on the stack, where compilers see that nothing else writes to it */
#define ROOM_OF(name, worker) double name[N_X + N_I + (N_DX + N_Y) * (N_DX + N_Y)]
#endif

/* A function of up to four arguments with one or two results. */
static inline void call(const struct function *f, const double *a, const double *b,
                        const double *c, const double *d, double *first, double *second)
{
    const double *const in[] = {a, b, c, d};
    double *const out[] = {first, second};
    f->call(f->self, in, out);
}

/* Whether inequality i is one of the constants beside a state, which holds once. */
static inline int is_of_constants(const struct horizon *o, int i) { return i >= N_I - N_CONSTANT; }

/* Whether inequality i holds at node k. */
static inline int holds_at(const struct horizon *o, long k, int i)
{
    if (i < N_U) return k < o->steps && isfinite(o->lower[i]);
    if (i < 2 * N_U) return k < o->steps && isfinite(o->upper[i - N_U]);
    if (i < 2 * N_U + N_MIXED) return k < o->steps;
    if (is_of_constants(o, i)) return k == o->steps;
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

/* Row i of node k without s, t and dlam, by (O5) to first order: m of (O10), which is returned,
 * and the stiffness (O9). */
static inline double condense(const struct horizon *o, long k, int i, double *stiffness)
{
    const long r = N_I * k + i;
    const double lam = o->lam[r];
    double rest = o->c[r] - o->aim_s[r] / lam, width = o->s[r] / lam;
    if (is_soft(o, i)) {
        const double left = o->weight[i] - lam;
        rest += o->aim_t[r] / left;
        width += o->t[r] / left;
    }
    *stiffness = 1.0 / width;
    return lam - rest / width;
}

/* Where the steps of a trajectory x, u have their unknowns z and ends y. */
struct steps {
    const double *x, *u;
    double *z, *y;
};

/* Work on step k by one thread; 1 where it fails. */
typedef int (*step_work)(const struct horizon *o, const struct worker *worker,
                         const struct steps *s, long k);

#pragma GCC visibility push(hidden)

/* threads.c */
int ocp_at_all_steps(struct horizon *o, step_work work, const struct steps *s);
/* horizon.c */
void ocp_inequalities(const struct horizon *o, const struct worker *worker, long k,
                      const double *x, const double *u, double *c);
void ocp_read_end(const struct horizon *o, const struct worker *worker, const double *x,
                  double *y);
int ocp_solve_step(const struct horizon *o, const struct worker *worker, const double *x,
                   const double *u, const double *z);
void ocp_predict(const struct horizon *o, double length, double *z);
int ocp_find_unknowns(const struct horizon *o, long k);
int ocp_take_step(const struct horizon *o, const struct worker *worker, const struct steps *s,
                  long k);
double ocp_merit(const struct horizon *o, double cost, const double *s, const double *t);
int ocp_evaluate(struct horizon *o, const double *x, const double *u, const double *y,
                 const double *s, const double *t, double *violation, double *merit, double *cost);
int ocp_expand(struct horizon *o);
/* riccati.c */
int ocp_factorize(struct horizon *o, double damping, int curved);
void ocp_substitute(struct horizon *o);
/* slacks.c */
void ocp_begin_slacks(struct horizon *o, int warm);
void ocp_aim(struct horizon *o);
void ocp_aim_beyond(struct horizon *o);
void ocp_slack_steps(struct horizon *o, double tau, double *primal, double *dual);
void ocp_move_slacks(const struct horizon *o, double length, double *s, double *t);
void ocp_move_multipliers(struct horizon *o, double costates, double dual);
/* search.c */
void ocp_exchange(struct horizon *o);
void ocp_move(const struct horizon *o, double length, double *x, double *u);
int ocp_search(struct horizon *o, double tau, double primal, double dual);
/* mixing.c */
int ocp_mix(struct horizon *o);
/* interior_point.c */
void ocp_newton_step(struct horizon *o, int corrected, double tau, double *primal, double *dual);
#pragma GCC visibility pop
#endif
