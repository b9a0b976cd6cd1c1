#ifndef NH_KERNEL_H
#define NH_KERNEL_H
/* The functions that the files of the kernel share, in the order of the work:
 *
 *     residual     r(z) of a step, by a sweep outward (twists) and one inward (wrenches)
 *     factors      of r_z, by a sweep inward; a solution by one inward and one outward
 *     multipliers, impulses of contacts, mimic joints, springs and dampers: small dense systems on
 *                  top of the factors
 *     derivatives  of the step, LANES columns of them at a time
 */
#include "tree_data.h"

/* The matrix of a factorization: r_z of Newton's equation, the mass matrix in its place, or r_z
 * with the rows of the derivatives of the step. */
enum equation { NEWTON_EQUATION, MASS_MATRIX, LINEARIZATION };

/* Motions of a body by the rates of a joint, about the origin of the body and in the world's axes:
 * by the start so that the end stays, and by the end so that the start stays, times h; of the
 * middle by the unknowns, or the ends of prescribed coordinates, and by the start; of the twist by
 * the unknowns; of velocities. */
enum motion { BEFORE, AFTER, BY_UNKNOWN, BY_START, RATE, UNIT };

/* A column of the derivatives, by the variable that changes. */
enum variable { BY_Q, BY_RHO, BY_PRESCRIBED, BY_SHARED, BY_MULTIPLIER, BY_NUMBERS, BY_STEP };
struct column {
    int body, coordinate, kind;
    const struct parameter_derivative *derivatives;
};

/* States of a body in LANES columns. */
enum column_state {
    HAS_WRENCHES = 1, /* of bodies that it carries, or by changes of the model */
    MOVES = 2,
    OF_JOINT = 4, /* by the seed of its joint, which has more than momenta */
    OF_NUMBERS = 8,
    HAS_WEIGHT = 16,
    SEEDED = 32,
    LOADED = 64, /* right-hand sides of its own */
};

/* Motions of bodies with OF_NUMBERS, and parts of their rows of the state after the step, that a
 * change of the model gives; changes of the carried masses. */
struct parameter_jumps {
    vn (*own)[9], (*extra)[2], *weight;
};

/* tree_data.c: the model and the workspace */
INTERNAL struct tree tree_of(double *const *a);
INTERNAL struct tree tree_at(double *const *a);

/* dense.c: dense systems */
INTERNAL int factor_dense(double *a, int n, int rank, int *pivots);
INTERNAL void solve_dense(const double *factors, int n, int rank, const int *pivots,
                          const double *right, double *b);
INTERNAL void solve_dense_columns(const double *factors, int n, int rank, const int *pivots,
                                  vn *b);
INTERNAL void solve_joint_columns(const double *factors, const int *pivots, int stride, vn *b);
INTERNAL void solve_transposed_columns(const double *factors, int n, const int *pivots, vn *b);
INTERNAL void solve_columns(int count, int rank, const int *at, const double *factors,
                            const int *order, int stride, double *rows, vn *c);
INTERNAL void add_rows(int count, const double *s, const int *at, const double *x, int n,
                       double *y);

/* multi_dof_joints.c: joints of several rates */
INTERNAL void joint_midpoint(const struct tree_model *model, const struct tree_data *data,
                             const struct joint *j, const double *z, struct multi_dof_joint *w);
INTERNAL void joint_midpoint_by_z(const struct tree_model *model, const struct tree_data *data,
                                  const struct joint *j, struct multi_dof_joint *w);
INTERNAL void joint_endpoint(const struct tree_model *model, const struct tree_data *data,
                             const struct joint *j, struct multi_dof_joint *w);
INTERNAL void joint_endpoints(const struct tree_model *model, const struct tree_data *data);
INTERNAL void joint_by_step(const struct tree_model *model, const struct tree_data *data,
                            const struct joint *j, const double *mu, const double *b, double *Zh,
                            double *Sh, double *before, double *after, double *end);
INTERNAL void pose_at_node(const struct tree_model *model, const struct joint *j, const double *q,
                           struct joint_pose *o);
INTERNAL void joint_end(const struct tree_model *model, const struct tree_data *data,
                        const struct joint *j, double *end, double *Ez);
INTERNAL void multi_dof_column(const struct tree_model *model, const struct joint *j,
                               const struct body *b, struct twist D, struct twist S, v4 *phi,
                               v4 *column);
INTERNAL void joint_wrenches(const struct multi_dof_joint *w, double *mu, double *b);
INTERNAL void multi_dof_row(const struct tree_model *model, const struct tree_data *data,
                            const struct joint *j, const struct body *b, enum equation equation);
INTERNAL void solve_multi_dof(const struct multi_dof_joint *w, int n, const double *right,
                              double *b);
INTERNAL int factor_multi_dof(const struct tree_data *data, const struct joint *j);

/* point_forces.c: springs and dampers between points */
INTERNAL struct twist unit_motion(const struct tree_data *data, const struct joint *j,
                                  const struct body *b, int l);
INTERNAL void joint_motions(const struct tree_data *data, const struct joint *j,
                            const struct body *b, int kind, struct twist *all);
INTERNAL v4 separation(const struct tree_data *data, const struct point_force *c);
INTERNAL void spring_stiffness(const struct point_force *c, v4 s, v4 *K);
INTERNAL v4 point_force_on_a(const struct tree_model *model, const struct tree_data *data,
                             const struct point_force *c);
INTERNAL void apply_springs(const struct tree_model *model, const struct tree_data *data,
                            int sized);
INTERNAL int damper_wrenches(const struct tree_data *data, const struct point_force *c,
                             struct external_wrench *end);
INTERNAL void point_force_rows(const struct tree_model *model, const struct tree_data *data,
                               const struct point_force *c, const v4 *e, double by, int kind,
                               double *rows);
INTERNAL void add_wrench_sizes(const struct tree_model *model, const struct tree_data *data,
                               int body, v4 at, double torque, double force);
INTERNAL void add_damper_sizes(const struct tree_model *model, const struct tree_data *data);
INTERNAL void damper_jacobian(const struct tree_model *model, const struct tree_data *data,
                              const struct point_force *c, double *z, double *q);
INTERNAL void add_damper_derivatives(const struct tree_model *model, const struct tree_data *data,
                                     const struct point_force *c, int n, const int *place,
                                     double *F_z, double *F_q);

/* external_wrenches.c: wrenches that inputs give */
INTERNAL void add_generalized_force(const struct tree_model *model, const struct tree_data *data,
                                    const struct external_wrench *p, double u, double *f);
INTERNAL void add_wrench_residual(const struct tree_model *model, const struct tree_data *data,
                                  int sized);
INTERNAL void wrench_derivatives(const struct tree_model *model, const struct tree_data *data,
                                 int n, const int *place, double *F_z, double *F_q);

/* residual.c: the discrete Euler-Lagrange equations, by two sweeps */
INTERNAL double rate_of(const struct tree_model *model, const struct tree_data *data,
                        const struct joint *j, const double *z);
INTERNAL void start_turns(const struct tree_model *model, const struct tree_data *data);
INTERNAL void add_mimic_rows(const struct tree_model *model, const struct tree_data *data,
                             double by_low, double by_high, double *row);
INTERNAL void residual(const struct tree_model *model, const struct tree_data *data,
                       const double *z, double turns);
INTERNAL double largest_turn(const struct tree_model *model, const struct tree_data *data);

/* factorization.c: Newton's equation of the joints, by two sweeps */
INTERNAL int factor_tree(const struct tree_model *model, const struct tree_data *data,
                         enum equation equation);
INTERNAL void solve_tree(const struct tree_model *model, const struct tree_data *data,
                         const double *r, double *dz);

/* mimic_joints.c: coordinates that joints share */
INTERNAL int factor_joints(const struct tree_model *model, const struct tree_data *data,
                           enum equation equation);
INTERNAL void solve_joints(const struct tree_model *model, const struct tree_data *data,
                           const double *r, double *dz);
INTERNAL void clear_shared_columns(const struct tree_model *model, const struct tree_data *data,
                                   int count, int first, int stride, double *ab, double *dz);

/* joint_rows.c: solutions for several rows at once. Rows W have entries of any joint, or only of
 * those on which constraints depend; then only these may be wanted of Y. */
enum row_reach { ANY_JOINT, FROM_CONSTRAINED, CONSTRAINED_JOINTS };
INTERNAL void solve_joint_rows(const struct tree_model *model, const struct tree_data *data,
                               const double *W, int rows, enum row_reach reach, double *Y);

/* low_rank_update.c: springs and dampers in Newton's equation */
INTERNAL int n_force_rows(const struct tree_model *model, int linearized);
INTERNAL int factor_with_forces(const struct tree_model *model, const struct tree_data *data,
                                enum equation equation);
INTERNAL void add_low_rank(const struct tree_model *model, const struct tree_data *data,
                           double *dz);
INTERNAL void solve_with_forces(const struct tree_model *model, const struct tree_data *data,
                                const double *r, double *dz);

/* constraints.c: holonomic constraints and their derivatives */
INTERNAL void end_configuration(const struct tree_model *model, const struct tree_data *data);
INTERNAL void constraint_gradient_size(const struct tree_model *model,
                                       const struct tree_data *data,
                                       const struct constraint_row *c,
                                       const struct constraint_value *o, double *g);
INTERNAL void evaluate_constraints(const struct tree_model *model, const struct tree_data *data,
                                   const double *q);
INTERNAL void constraint_jacobian(const struct tree_model *model, const struct tree_data *data,
                                  const double *q, double *all);
INTERNAL void constraint_hessian_row(const struct tree_model *model, const struct tree_data *data,
                                     int k, int m, double *by);

/* wheels.c: constraints of wheels, by generated functions */
INTERNAL void start_wheels(const struct tree_model *model, const struct tree_data *data);
INTERNAL void evaluate_wheels(const struct tree_model *model, const struct tree_data *data,
                              const double *z);
INTERNAL void measure_wheels(const struct tree_model *model, const struct tree_data *data,
                             const double *z);
INTERNAL void wheel_jacobian(const struct tree_model *model, const struct tree_data *data);
INTERNAL void start_wheel_columns(const struct tree_model *model, const struct tree_data *data);
INTERNAL void wheel_rows(const struct tree_model *model, const struct tree_data *data, int stride,
                         int count, double *matrix, double *dz);
INTERNAL int project_momentum(const struct tree_model *model, const struct tree_data *data,
                              double *x);
INTERNAL void admissible_columns(const struct tree_model *model, const struct tree_data *data,
                                 const double *x1, const double *ab, const double *dz,
                                 double *reduced_ab, double *reduced_dz);
INTERNAL void load_unknowns(const struct tree_model *model, const struct tree_data *data,
                            const double *z);
INTERNAL void store_unknowns(const struct tree_model *model, const struct tree_data *data,
                             double *z);

/* kkt.c: Newton's equation with multipliers */
INTERNAL void start_constraints(const struct tree_model *model, const struct tree_data *data);
INTERNAL void kkt_residual(const struct tree_model *model, const struct tree_data *data,
                           const double *z, double turns);
INTERNAL void constraint_jacobian_by_z(const struct tree_model *model,
                                       const struct tree_data *data);
INTERNAL int kkt_factor(const struct tree_model *model, const struct tree_data *data,
                        enum equation equation);
INTERNAL void kkt_solve(const struct tree_model *model, const struct tree_data *data,
                        const double *r, double *dz);
INTERNAL int project_velocity(const struct tree_model *model, const struct tree_data *data,
                              double *z);

/* contacts.c: the impulses of contacts in a step */
INTERNAL int solve_contacts(const struct tree_model *model, const struct tree_data *data,
                            enum start start, double *z, double *info);

/* force_columns.c: forces that change with the motion, in the derivatives */
INTERNAL void spring_columns(const struct tree_model *model, const struct tree_data *data,
                             int stride, double *ab, double *dz);
INTERNAL int wrench_columns(const struct tree_model *model, const struct tree_data *data, int n,
                            int stride, double *ab, double *dz);

/* contact_columns.c: their rows in the derivatives */
INTERNAL void start_contact_columns(const struct tree_model *model, const struct tree_data *data);
INTERNAL void contact_rows(const struct tree_model *model, const struct tree_data *data,
                           int stride, double *matrix, double *dz);
INTERNAL void contact_equations(const struct tree_model *model, const struct tree_data *data,
                                int n, double *r_z);

/* step.c: a step by Newton's iteration */
INTERNAL int settled(const struct tree_model *model, const double *info);
INTERNAL int velocity_of(const struct tree_model *model, const struct tree_data *data, double *z);

/* parameter_jacobian.c: changes by the numbers of the model */
INTERNAL struct parameter_jumps jumps_at(const struct tree_model *model, vn *room);
INTERNAL void add_to_lane(const struct tree_model *model, vn *to, int lane, double by,
                          const v4 *x);
INTERNAL int begin_parameter(const struct tree_model *model, const struct tree_data *data,
                             const struct parameter_derivative *slope, int number, int lane,
                             vn (*c)[9], vn *right, unsigned char *state,
                             const struct parameter_jumps *s);
INTERNAL void pass_weight(const struct tree_model *model, const struct tree_data *data, int i,
                          vn (*c)[9], vn *right, unsigned char *state,
                          const struct parameter_jumps *s);
INTERNAL void begin_step(const struct tree_model *model, const struct tree_data *data, vn (*c)[9],
                         vn *right, unsigned char *state, const struct parameter_jumps *s);

/* jacobian_columns.c: columns of the derivatives */
INTERNAL void columns(const struct tree_model *model, const struct tree_data *data,
                      const struct column *s, int count, int first, int stride, double *ab,
                      double *dz);
INTERNAL void columns_by_seeds(const struct tree_model *model, const struct tree_data *data,
                               int count, int first, int stride, double *ab, double *dz);
INTERNAL void columns_by(const struct tree_model *model, const struct tree_data *data,
                         const int *body_of, int from, int end, int stride, double *ab,
                         double *dz);
INTERNAL void columns_by_forces(const struct tree_model *model, const struct tree_data *data,
                                int stride, double *ab, double *dz);
INTERNAL void columns_by_wrenches(const struct tree_model *model, const struct tree_data *data,
                                  int stride, double *ab, double *dz);

/* linearization.c: the derivatives of a step */
INTERNAL void columns_by_shared(const struct tree_model *model, const struct tree_data *data);
INTERNAL void eliminate_shared(const struct tree_model *model, const struct tree_data *data,
                               int stride, double *ab, double *dz);
#endif
