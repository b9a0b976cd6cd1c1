#ifndef NH_TREE_DATA_H
#define NH_TREE_DATA_H
/* A tree of rigid bodies: `tree_model` is constant, `tree_data` the workspace of one thread.
 *
 * The frame of a body is that of the joint that moves it: a revolute joint turns about its z, a
 * prismatic one slides along its x. Twists (omega, velocity) and wrenches (torque, force) of a
 * body are about the origin of its frame and in the axes of the world: from a body to its parent
 * only the origin shifts. Changes of them are changes that the body sees, as if the axes turned
 * with it. q are coordinates, v their rates, z the unknowns of a step: mean rates, and the
 * multipliers behind them; rho are momenta. Units are SI. */
#include "definitions.h"
#include "free_step.h"
#include "simd.h"
#include "tree_layout.h"

enum { MAX_DOF = 6 }; /* rates of a joint */

/* Functions of one type of joints (multi_dof_joints.c; joint_functions.py has their equations). */
struct joint_functions {
    struct function midpoint, midpoint_by_z, endpoint, row_by_z, derivatives, derivatives_by_h,
        pose, end;
};

/* Functions of the constraints of wheels (wheels.c; tree_wheels.py has their equations). */
struct wheel_functions {
    struct function rows, values, derivatives, sizes, basis;
};

/* The functions in a[SYSTEM], for one thread: of every type of joints of several rates, of the
 * contacts, and of the wheels. */
struct tree_functions {
    const struct joint_functions *joints;
    const struct contact_functions *contacts;
    const struct wheel_functions *wheels;
};

/* The model of a[TREE]: the numbers of its header, where its arrays begin, and its functions. */
struct tree_model {
    int n_bodies, nq, nv, n_free, n_forces, n_constraints, n_redundant, n_shared, n_wrenches,
        planar, n_springs, n_dampers, n_multi_dof, n_parameters, n_force_rates, n_impulses,
        n_slips, n_contact_rates, n_contacts, impulse_room, n_wheel_rows, n_rolling, n_wheel_rates;
    int n_rates; /* rates of all joints, with the mimic ones */
    double start_fraction, energy_at_rest;
    v4 gravity;
    const struct joint *joints;
    const struct joint_functions *joint_functions;
    const struct constraint_row *constraints;
    const struct external_wrench *wrenches;
    const struct point_force *point_forces;
    const int32_t *actuated_rates, *contact_rates, *wheel_rates;
    const double *splines;
    const struct contact_functions *contact_functions;
    const struct wheel_functions *wheel_functions;
};

/* A body in the middle of the step. */
struct body {
    v4 column[3], p;                  /* columns of its rotation, its position in the parent */
    v4 parent_omega, parent_velocity; /* twist that the parent gives it */
    v4 omega, velocity;               /* its own twist */
    v4 first_moment;                  /* mass times center */
    /* of all that it carries: torque of gravity and springs, momentum */
    v4 gravity_torque, angular_momentum, linear_momentum;
    /* Newton's equation: (dtorque, dmomentum) = H motion + wrench */
    v4 H[27], wrench[3], motion[3];
    v4 carried_moment;        /* mass times center of all that it carries */
    v4 world_p, spring_force; /* position in the world, force of springs on all it carries */
    v4 saved[2];
    /* sizes of the terms that add up to the wrenches, which may cancel */
    double torque_size, angular_size, linear_size, rate;
    double has_inertia, potential, spring_force_size;
    /* sizes of the terms of p and of the twist along the chain from the root */
    double position_size, omega_size, velocity_size;
    double cosine, sine; /* of the angle of its joint at the start of the step */
};

/* Newton's equation along one rate (T11, T14 to T16): the body moves by phi dz, the wrench on the
 * parent changes by `column` dz; the row of the equation is `left` on the body's wrench and `row`
 * on its motion before its own dz. `_in`: on wrenches and motions of the parent; `1`: of the
 * momentum after the step (T32); `_q`: by a change of the coordinate at the start (T31). */
struct newton_row {
    v4 phi[3], column[3], row[3], left[3], column_in[3], row_in[3];
    double pivot, slope1, source, source1;
    v4 row1[3], left1[3], phi_q[3], column_q[3];
};

/* A joint of several rates in the middle of the step: results of its functions, in the axes of
 * the body, and small matrices. Displacements Z and twists S are (6, n). */
struct multi_dof_joint {
    double rotation[9], position[3], twist[6];
    double Z0[36], S0[36];                 /* by a change of the start that leaves the end */
    double Zz[36], Sz[36];                 /* by the unknowns */
    double Zq[36], Sq[36];                 /* by the start, the unknowns fixed */
    double Z1[36], S1[36];                 /* by a change of the end that leaves the start */
    double end[8];                         /* coordinates after the step */
    double K[36], K1[36], Kq[36], K1q[36]; /* derivatives of the rows at fixed mu, b */
    double Ez[36], Eq[36];                 /* derivatives of local(end, .) */
    double pivot[36], slope1[36], source[36], source1[36];
    v4 mu_torque, mu_force, b_torque, b_force; /* dual to displacements, and to twists */
    int pivots[MAX_DOF];
};

/* The pose of such a joint at a node, displacements D (6, n) by its coordinates, dD/dq (6 n, n);
 * derivatives of the end of a step by the unknowns. */
struct joint_pose {
    double turn[9], at[3], D[36], dD[216], Ez[36];
};

/* The pose of a body in the world at a node, and the size of the terms that add up to p. */
struct body_pose {
    v4 column[3], p;
    double p_size, unused[3];
};

/* A row of the constraints at a node: s from a's point to b's, directions, its value and the size
 * of its terms; wrenches on a and b about a's point, and bounds of their terms. */
struct constraint_value {
    v4 from, s, e_a, e_b;
    double length, value, size, torque, force;
    struct twist on_a, on_b;
};

/* A coordinate of a joint that carries a body, its unit motion, and those of the middle of the
 * step by its unknown and by the start, all about the body's origin; prescribed ones move the
 * middle from both ends. */
struct supporting_coordinate {
    int body, at;
    struct twist unit, by_z, by_q;
};

/* Changes of a coordinate q and of its momentum in LANES columns; `motion` of a prescribed one is
 * that of its end, and of a shared one that of its rate. */
struct seed {
    vn q, rho, motion;
};

/* The workspace in a[MEMORY]; n = n_rates, m = n_constraints, k = n_impulses. */
struct tree_data {
    double h, half_step, prescribed_time; /* the time in which prescribed coordinates move */
    const double *q, *rho, *u, *p;
    /* residual r, sizes of its terms, forces on joints, derivatives of the Lagrangian, unknowns of
     * the last residual, ..., and room of Newton's iteration (newton.h) (n + m each) */
    double *r, *r_size, *joint_force, *dL_dq, *dL_dv, *z, *reached, *wrench_force;
    double *known_size, *dz, *trial, *start, *larger, *after;
    struct body *bodies;     /* (n_bodies) */
    struct newton_row *rows; /* (n) */
    struct multi_dof_joint *multi_dof;
    int *body_of; /* every rate */
    vn *simd_columns, *solved_columns;
    struct seed *seeds; /* (nv) */
    /* constraints (constraints.c, kkt.c) */
    struct body_pose *poses;
    struct twist *motions;
    struct joint_pose *joint_poses;
    struct constraint_value *constraint_values;
    double *q1;                          /* configuration after the step */
    double *G0, *G0_size, *h0_size;      /* Dh before the step, sizes of terms of Dh and h */
    double *G1, *Y;                      /* Dh after the step, r_z^{-1} G0^T */
    double *schur, *schur_size;          /* (m, m): G1 q1_z Y */
    double *ab_by_lambda, *dz_by_lambda; /* derivatives by the multipliers */
    double *projection;                  /* (m): impulses that keep Dh v = 0 */
    vn *constraint_columns;              /* (nv): right-hand sides of LANES columns */
    int *multiplier_rows;                /* of dz, slip bounds included */
    /* wheels (wheels.c), w their rows: values, derivatives by the wheel_rates, sizes; (w,
     * columns) by the variables; (nv, nv): forces of the impulses by q */
    double *wheel_values, *wheel_by_z, *wheel_sizes, *wheel_by_s, *wheel_hessian;
    double *unknowns;                  /* the unknowns with the impulses of rolling */
    double *momentum;                  /* (nv): after the step, before it is projected (T40) */
    double *step_parameters;           /* those of a part of the step */
    double *all_ab, *all_dz;           /* derivatives by all momenta */
    double *basis, *dual, *basis_by_q; /* X, D X and (X^T p)_q at a node (T41) */
    double *basis_product, *end_state; /* D X (X^T p)_q; q1 with `momentum` */
    /* contacts (contacts.c, contact_columns.c); rows of their impulses are behind those of G0 */
    double *impulse_response;          /* (k, nv + m): Y of these rows (T37) */
    double *w, *w_y, *friction;        /* velocities, by the contact_rates; friction and bounds */
    double *contact_G, *contact_b;     /* (k, k) + LANES, (k): w = G x + b (T37) */
    double *impulses, *impulse_room;   /* memory of the impulse library */
    double *impulse_change;            /* (k): of the impulses */
    double *near_rows, *near_friction; /* rows, and friction and bounds, of near contacts */
    double *far, *last_far;            /* (k + slips): impulses and slip bounds of far contacts */
    double *opening;                   /* (k): w of a body that does not move */
    struct contact_set *near;
    double *impulse_hessian; /* (nv, nv): forces of the impulses by q */
    double *rate_response;   /* (n_contact_rates, k + LANES): Y of the contact_rates */
    double *rate_change;     /* (n_contact_rates): y0 of them */
    double *free_right, *free_column, *guess; /* (n_free + m) each: the tree without impulses */
    double *free_inverse;                     /* (n_free + m, n_free + m): r_y^{-1} */
    double *by_impulses, *by_velocities;      /* rows of the contacts by x and psi, and by w */
    double *w_x, *w_s;                        /* (k, m + k), (k, columns): derivatives of w */
    int *free_pivots;
    /* mimic joints (mimic_joints.c) */
    double *Y_shared, *shared_matrix, *shared_row, *shared_right, *dz_by_shared, *ab_by_shared;
    /* springs and dampers between points (low_rank_update.c) */
    double *force_rows, *force_rows1, *force_by_z, *force_by_q, *force_response, *force_matrix;
    double *force_change, *damper_rows; /* y; (9, nv): the rows of one damper */
    /* wrenches, springs and dampers in the derivatives (force_columns.c, external_wrenches.c) */
    double *force_scratch, *force_part;
    struct supporting_coordinate *supporting;
    int *identity, *rate_places, *supporting_rates, *rate_order;
    int *schur_pivots, *shared_rates, *shared_pivots, *force_pivots;
};

struct tree {
    struct tree_model model;
    struct tree_data data;
};

/* A step that takes no time against the given one, but prescribed coordinates move as in it. */
INLINE struct tree_data node_of(const struct tree_data *data)
{
    const double instant = 1e-30;
    struct tree_data node = *data;
    node.h *= instant;
    node.half_step *= instant;
    return node;
}

/* The rank of the constraints' derivatives. */
INLINE int n_independent(const struct tree_model *model)
{
    return model->n_constraints - model->n_redundant;
}

/* Constraints between points of bodies, in front of those of wheels. */
INLINE int n_closures(const struct tree_model *model)
{
    return model->n_constraints - model->n_wheel_rows;
}

/* Multipliers of constraints, and impulses of contacts. */
INLINE int n_multipliers(const struct tree_model *model)
{
    return model->n_constraints + model->n_impulses;
}

/* Number of variables: q, rho, forces, ends of prescribed coordinates. */
INLINE int n_variables(const struct tree_model *model)
{
    return 3 * model->nv + model->n_forces - model->n_free;
}

INLINE int is_prescribed(const struct joint *j) { return j->mode > 0; }
/* Whether its coordinate moves several joints. */
INLINE int is_coupled(const struct joint *j) { return j->mode < 0; }

/* A vector in the world's axes in those of the body, and back. */
INLINE v4 inward(const struct body *b, v4 x)
{
    return sums(b->column[0] * x, b->column[1] * x, b->column[2] * x);
}
INLINE v4 outward(const struct body *b, v4 x) { return combine(b->column, x); }

/* A scalar joint moves along one unit twist S = (rotates axis, slide axis): this is all that the
 * kernel knows of its type. A REVOLUTE joint with a pitch is a helical one. */
INLINE int rotates(const struct joint *j) { return j->type == REVOLUTE; }
INLINE double slide_of(const struct joint *j) { return rotates(j) ? j->pitch : 1.0; }
/* The sign of a rate, smoothed over the friction velocity (T8). */
INLINE double smooth_sign(const struct joint *j, double rate)
{
    return rate / hypot(rate, j->friction_velocity);
}

/* The force of a damper and of smoothed dry friction against a rate (T8), and its derivative. */
INLINE double resistance(const struct joint *j, double rate)
{
    const double damped = j->damping * rate;
    return j->friction == 0.0 ? damped : damped + j->friction * smooth_sign(j, rate);
}
INLINE double resistance_slope(const struct joint *j, double rate)
{
    if (j->friction == 0.0) return j->damping;
    const double by = j->friction_velocity, length = hypot(rate, by);
    return j->damping + j->friction * (by / length) * (by / length) / length;
}

/* The energy V of a joint's springs, V', V'', and a bound on the terms of V' (T8). A nonlinear
 * spring has V = P(x) / scale at x = scale q + offset, with P by a polynomial for each piece. The
 * spline is scale, offset, the number n of coefficients, the knots, and for every piece (one more
 * than knots) its center c and the coefficients of 1, (x - c), ..., (x - c)^(n - 1). */
struct spring_value {
    double energy, slope, stiffness, size;
};
INLINE struct spring_value springs_at(const struct tree_model *model, const struct joint *j,
                                      double q)
{
    struct spring_value v = {0.5 * j->stiffness * q * q - j->rest_force * q,
                             j->stiffness * q - j->rest_force, j->stiffness,
                             fabs(j->rest_force) + j->stiffness * fabs(q)};
    if (!j->n_knots) return v;
    const double *spline = model->splines + j->spline, *knots = spline + 3, scale = spline[0];
    const double x = scale * q + spline[1];
    const int n = (int)spline[2];
    int i = 0;
    while (i < j->n_knots && x >= knots[i]) ++i;
    const double *piece = knots + j->n_knots + (size_t)(n + 1) * i, by = x - piece[0];
    double P = 0.0, slope = 0.0, curvature = 0.0, size = 0.0;
    for (int k = n; k > 0; --k) {
        curvature = 2.0 * slope + by * curvature;
        slope = P + by * slope;
        P = piece[k] + by * P;
        if (k > 1) size = (k - 1) * fabs(piece[k]) + fabs(by) * size;
    }
    v.energy += P / scale;
    v.slope += slope;
    v.stiffness += scale * curvature;
    v.size += size + fabs(curvature) * (fabs(scale * q) + fabs(spline[1]));
    return v;
}

/* The coordinate of a scalar joint in the middle of the step. */
INLINE double middle_of(const struct tree_data *data, const struct joint *j, const struct body *b)
{
    return data->q[j->q_index] + data->half_step * b->rate;
}

INLINE v4 axis_of(const struct joint *j, const v4 *column) { return column[rotates(j) ? 2 : 0]; }
INLINE struct twist unit_twist(const struct joint *j, const v4 *column)
{
    const v4 zero = vec(0, 0, 0), axis = axis_of(j, column);
    const double slide = slide_of(j);
    return (struct twist){rotates(j) ? axis : zero, slide == 0.0 ? zero : slide * axis};
}

/* Columns of the rotation and position of a frame become those after its scalar joint (T4), for
 * a coordinate q, if that is an angle with cosine c and sine s. */
INLINE void move_scalar(const struct joint *j, double q, double c, double s, v4 *column, v4 *p)
{
    const double slide = slide_of(j);
    if (rotates(j)) {
        const v4 x = column[0], y = column[1];
        column[0] = c * x + s * y;
        column[1] = c * y - s * x;
    }
    if (slide != 0.0) *p += slide * q * axis_of(j, column);
}

/* The world, which carries all. */
static const struct body WORLD_BODY = {.column = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
INLINE const struct body *parent_of(const struct tree_data *data, const struct joint *j)
{
    return j->parent < 0 ? &WORLD_BODY : data->bodies + j->parent;
}

/* The force on all that a body carries that does not turn with it: weight and springs. */
INLINE v4 load_on(const struct tree_model *model, const struct joint *j, const struct body *b)
{
    return j->carried_mass * model->gravity + b->spring_force;
}

/* Column l of (6, n) numbers. */
INLINE struct twist twist_of(const double *D, int n, int l)
{
    return (struct twist){vec(D[l], D[n + l], D[2 * n + l]),
                          vec(D[3 * n + l], D[4 * n + l], D[5 * n + l])};
}

/* All columns, in the world's axes. */
INLINE void twists_of(const struct body *b, const double *D, int n, struct twist *all)
{
    for (int l = 0; l < n; ++l) {
        const struct twist s = twist_of(D, n, l);
        all[l] = (struct twist){outward(b, s.w), outward(b, s.v)};
    }
}

/* -ad_D^T b for the momentum b of a body and a displacement D. */
INLINE struct twist coadjoint(const struct body *b, struct twist D)
{
    return (struct twist){cross(D.w, b->angular_momentum) + cross(D.v, b->linear_momentum),
                          cross(D.w, b->linear_momentum)};
}

/* A vector fixed in a body (-1: the world) in the world's axes. */
INLINE v4 world_lever(const struct tree_data *data, int body, v4 at)
{
    return body < 0 ? at : outward(data->bodies + body, at);
}
#endif
