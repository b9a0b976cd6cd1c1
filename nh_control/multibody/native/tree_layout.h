#ifndef NH_TREE_LAYOUT_H
#define NH_TREE_LAYOUT_H
/* Written by kernel_layout.py: `header`. */
#include <stddef.h>
#include <stdint.h>

#include "vectors.h"

/* Types of joints. A joint with several rates has GENERATED + the number of its functions. */
enum joint_type {
    REVOLUTE = 0,
    PRISMATIC = 1,
    GENERATED = 2,
};

/* How the coordinate of a joint moves. */
enum joint_mode {
    MIMIC = -2,
    SHARED = -1,
    FREE = 0,
    PRESCRIBED = 1,
    IDLE = 2,
};

/* Whether the coordinates of a joint begin with a quaternion. */
enum quaternion {
    NO_QUATERNION = 0,
    QUATERNION = 1,
    QUATERNION_PLACED = 2,
};

/* Rows of the constraints, with s from a point of body a to one of body b. */
enum constraint_type {
    DISTANCE = 0,
    ALONG_AXIS = 1,
    AXES_COSINE = 2,
    SCREW = 3,
};

/* Numbers of a joint that parameters change: the first of each; there are N_QUANTITIES. */
enum joint_quantity {
    BY_MASS = 0,
    BY_FIRST = 1,
    BY_INERTIA = 4,
    BY_POSITION = 10,
    BY_STIFFNESS = 13,
    BY_REST_FORCE = 14,
    BY_DAMPING = 15,
    BY_FRICTION = 16,
    BY_FRICTION_VELOCITY = 17,
    N_QUANTITIES = 18,
};

/* A joint and the body that it moves. */
struct joint {
    int32_t parent; /* number of the body that carries it, -1: the world */
    int32_t type; /* enum joint_type, or GENERATED + number of its functions */
    int32_t q_index; /* where its coordinates begin */
    int32_t v_index; /* where its rates begin; rates of mimic joints follow at nv */
    int32_t n_dof; /* number of its rates */
    int32_t rate_index; /* v_index of the joint that it follows, or its own */
    int32_t quaternion; /* enum quaternion */
    int32_t mode; /* enum joint_mode */
    int32_t multi_dof_index; /* its number among joints with several rates */
    int32_t constrained; /* whether constraints depend on it */
    double mass;
    double carried_mass; /* mass of everything that it carries */
    double stiffness;
    double rest_force; /* stiffness times rest */
    double damping;
    double friction; /* largest dry friction */
    double friction_velocity; /* rate over which it changes its sign */
    double ratio; /* of its coordinate to that of the joint that it follows */
    double pitch; /* translation of a REVOLUTE joint along its axis per radian */
    int32_t n_knots; /* knots of the spline that is its nonlinear spring, 0: there is none */
    int32_t spline; /* where the numbers of the spline begin */
    double unused;
    v4 column[3]; /* columns of the rotation of the placement in the parent */
    v4 p; /* position of the placement */
    v4 first_moment; /* mass times center */
    v4 inertia[3]; /* rows of the inertia about the origin of the frame */
};
_Static_assert(offsetof(struct joint, parent) == 0, "parent");
_Static_assert(offsetof(struct joint, type) == 4, "type");
_Static_assert(offsetof(struct joint, q_index) == 8, "q_index");
_Static_assert(offsetof(struct joint, v_index) == 12, "v_index");
_Static_assert(offsetof(struct joint, n_dof) == 16, "n_dof");
_Static_assert(offsetof(struct joint, rate_index) == 20, "rate_index");
_Static_assert(offsetof(struct joint, quaternion) == 24, "quaternion");
_Static_assert(offsetof(struct joint, mode) == 28, "mode");
_Static_assert(offsetof(struct joint, multi_dof_index) == 32, "multi_dof_index");
_Static_assert(offsetof(struct joint, constrained) == 36, "constrained");
_Static_assert(offsetof(struct joint, mass) == 40, "mass");
_Static_assert(offsetof(struct joint, carried_mass) == 48, "carried_mass");
_Static_assert(offsetof(struct joint, stiffness) == 56, "stiffness");
_Static_assert(offsetof(struct joint, rest_force) == 64, "rest_force");
_Static_assert(offsetof(struct joint, damping) == 72, "damping");
_Static_assert(offsetof(struct joint, friction) == 80, "friction");
_Static_assert(offsetof(struct joint, friction_velocity) == 88, "friction_velocity");
_Static_assert(offsetof(struct joint, ratio) == 96, "ratio");
_Static_assert(offsetof(struct joint, pitch) == 104, "pitch");
_Static_assert(offsetof(struct joint, n_knots) == 112, "n_knots");
_Static_assert(offsetof(struct joint, spline) == 116, "spline");
_Static_assert(offsetof(struct joint, unused) == 120, "unused");
_Static_assert(offsetof(struct joint, column) == 128, "column");
_Static_assert(offsetof(struct joint, p) == 224, "p");
_Static_assert(offsetof(struct joint, first_moment) == 256, "first_moment");
_Static_assert(offsetof(struct joint, inertia) == 288, "inertia");
_Static_assert(sizeof(struct joint) == 384, "joint");

/* One row of the holonomic constraints (constraints.c). */
struct constraint_row {
    int32_t type; /* enum constraint_type */
    int32_t a; /* number of a body, -1: the world */
    int32_t b;
    int32_t body_fixed; /* whether e_a is fixed in body a, not in the world */
    int32_t length_q; /* coordinate that is the distance, -1: it is `value` */
    int32_t length_v; /* its rate */
    double value;
    v4 at_a; /* points in the axes of the bodies */
    v4 at_b;
    v4 e_a; /* directions */
    v4 e_b;
    v4 e_zero; /* of a SCREW, in body a */
};
_Static_assert(offsetof(struct constraint_row, type) == 0, "type");
_Static_assert(offsetof(struct constraint_row, a) == 4, "a");
_Static_assert(offsetof(struct constraint_row, b) == 8, "b");
_Static_assert(offsetof(struct constraint_row, body_fixed) == 12, "body_fixed");
_Static_assert(offsetof(struct constraint_row, length_q) == 16, "length_q");
_Static_assert(offsetof(struct constraint_row, length_v) == 20, "length_v");
_Static_assert(offsetof(struct constraint_row, value) == 24, "value");
_Static_assert(offsetof(struct constraint_row, at_a) == 32, "at_a");
_Static_assert(offsetof(struct constraint_row, at_b) == 64, "at_b");
_Static_assert(offsetof(struct constraint_row, e_a) == 96, "e_a");
_Static_assert(offsetof(struct constraint_row, e_b) == 128, "e_b");
_Static_assert(offsetof(struct constraint_row, e_zero) == 160, "e_zero");
_Static_assert(sizeof(struct constraint_row) == 192, "constraint_row");

/* One component of a wrench that an input applies (external_wrenches.c). */
struct external_wrench {
    int32_t body;
    int32_t torque; /* whether it is a torque, not a force */
    int32_t body_fixed; /* whether e is fixed in the body, not in the world */
    int32_t input; /* number of its input, -1: it is `value` */
    double value;
    v4 at; /* the point in the axes of the body */
    v4 e; /* the direction */
};
_Static_assert(offsetof(struct external_wrench, body) == 0, "body");
_Static_assert(offsetof(struct external_wrench, torque) == 4, "torque");
_Static_assert(offsetof(struct external_wrench, body_fixed) == 8, "body_fixed");
_Static_assert(offsetof(struct external_wrench, input) == 12, "input");
_Static_assert(offsetof(struct external_wrench, value) == 16, "value");
_Static_assert(offsetof(struct external_wrench, at) == 24, "at");
_Static_assert(offsetof(struct external_wrench, e) == 56, "e");
_Static_assert(sizeof(struct external_wrench) == 88, "external_wrench");

/* A spring or a damper between points of two bodies (point_forces.c). */
struct point_force {
    int32_t a; /* number of a body, -1: the world */
    int32_t b;
    double stiffness;
    double rest; /* rest length */
    double damping;
    v4 at_a; /* points in the axes of the bodies */
    v4 at_b;
};
_Static_assert(offsetof(struct point_force, a) == 0, "a");
_Static_assert(offsetof(struct point_force, b) == 4, "b");
_Static_assert(offsetof(struct point_force, stiffness) == 8, "stiffness");
_Static_assert(offsetof(struct point_force, rest) == 16, "rest");
_Static_assert(offsetof(struct point_force, damping) == 24, "damping");
_Static_assert(offsetof(struct point_force, at_a) == 32, "at_a");
_Static_assert(offsetof(struct point_force, at_b) == 64, "at_b");
_Static_assert(sizeof(struct point_force) == 96, "point_force");

/* The derivative of a joint's number with respect to a parameter. Parameter -1 ends the list. */
struct parameter_derivative {
    int32_t parameter;
    int32_t joint;
    int32_t quantity; /* enum joint_quantity */
    int32_t unused;
    double value;
};
_Static_assert(offsetof(struct parameter_derivative, parameter) == 0, "parameter");
_Static_assert(offsetof(struct parameter_derivative, joint) == 4, "joint");
_Static_assert(offsetof(struct parameter_derivative, quantity) == 8, "quantity");
_Static_assert(offsetof(struct parameter_derivative, unused) == 12, "unused");
_Static_assert(offsetof(struct parameter_derivative, value) == 16, "value");
_Static_assert(sizeof(struct parameter_derivative) == 24, "parameter_derivative");

/* The beginning of a[TREE]. Offsets of arrays are in bytes from its start. */
struct tree_header {
    int32_t n_bodies;
    int32_t nq;
    int32_t nv;
    int32_t n_free; /* rates that are not prescribed */
    int32_t n_parameters; /* parameters and the step h */
    int32_t n_inputs; /* forces, and ends of prescribed coordinates */
    int32_t n_multi_dof; /* joints with several rates */
    int32_t n_constraints; /* of closures, then of wheels */
    int32_t n_redundant; /* constraints that follow from the others */
    int32_t n_shared; /* coordinates that several joints share */
    int32_t n_mimic; /* joints that follow others */
    int32_t n_wrenches;
    int32_t n_force_rates; /* rates that carry a body on which a wrench or damper acts */
    int32_t planar; /* whether everything moves in a plane, whose normal is the world's z */
    int32_t n_springs;
    int32_t n_dampers;
    int32_t n_contacts;
    int32_t n_impulses; /* impulses of contacts */
    int32_t n_slips; /* slip bounds of contacts with friction */
    int32_t n_contact_rates; /* unknowns on which velocities of contacts depend */
    int32_t impulse_room; /* doubles of memory for the impulse library */
    int32_t n_wheel_rows; /* constraints of wheels: heights, then rolling */
    int32_t n_rolling; /* velocity constraints among these, the last ones */
    int32_t n_wheel_rates; /* unknowns on which the constraints of wheels depend */
    int32_t joints; /* struct joint (n_bodies) */
    int32_t actuated_rates; /* int32_t (forces): the rate on which a force acts, or -1 */
    int32_t constraints; /* struct constraint_row: the closures */
    int32_t wrenches; /* struct external_wrench (n_wrenches) */
    int32_t point_forces; /* struct point_force: springs, then dampers */
    int32_t splines; /* double: splines of nonlinear springs (tree_data.h) */
    int32_t contact_rates; /* int32_t (n_contact_rates) */
    int32_t wheel_rates; /* int32_t (n_wheel_rates) */
    double start_fraction; /* part of the forces that acts at the start of a step */
    double energy_at_rest; /* sum of stiffness rest^2 of all joint springs */
    v4 gravity;
};
_Static_assert(offsetof(struct tree_header, n_bodies) == 0, "n_bodies");
_Static_assert(offsetof(struct tree_header, nq) == 4, "nq");
_Static_assert(offsetof(struct tree_header, nv) == 8, "nv");
_Static_assert(offsetof(struct tree_header, n_free) == 12, "n_free");
_Static_assert(offsetof(struct tree_header, n_parameters) == 16, "n_parameters");
_Static_assert(offsetof(struct tree_header, n_inputs) == 20, "n_inputs");
_Static_assert(offsetof(struct tree_header, n_multi_dof) == 24, "n_multi_dof");
_Static_assert(offsetof(struct tree_header, n_constraints) == 28, "n_constraints");
_Static_assert(offsetof(struct tree_header, n_redundant) == 32, "n_redundant");
_Static_assert(offsetof(struct tree_header, n_shared) == 36, "n_shared");
_Static_assert(offsetof(struct tree_header, n_mimic) == 40, "n_mimic");
_Static_assert(offsetof(struct tree_header, n_wrenches) == 44, "n_wrenches");
_Static_assert(offsetof(struct tree_header, n_force_rates) == 48, "n_force_rates");
_Static_assert(offsetof(struct tree_header, planar) == 52, "planar");
_Static_assert(offsetof(struct tree_header, n_springs) == 56, "n_springs");
_Static_assert(offsetof(struct tree_header, n_dampers) == 60, "n_dampers");
_Static_assert(offsetof(struct tree_header, n_contacts) == 64, "n_contacts");
_Static_assert(offsetof(struct tree_header, n_impulses) == 68, "n_impulses");
_Static_assert(offsetof(struct tree_header, n_slips) == 72, "n_slips");
_Static_assert(offsetof(struct tree_header, n_contact_rates) == 76, "n_contact_rates");
_Static_assert(offsetof(struct tree_header, impulse_room) == 80, "impulse_room");
_Static_assert(offsetof(struct tree_header, n_wheel_rows) == 84, "n_wheel_rows");
_Static_assert(offsetof(struct tree_header, n_rolling) == 88, "n_rolling");
_Static_assert(offsetof(struct tree_header, n_wheel_rates) == 92, "n_wheel_rates");
_Static_assert(offsetof(struct tree_header, joints) == 96, "joints");
_Static_assert(offsetof(struct tree_header, actuated_rates) == 100, "actuated_rates");
_Static_assert(offsetof(struct tree_header, constraints) == 104, "constraints");
_Static_assert(offsetof(struct tree_header, wrenches) == 108, "wrenches");
_Static_assert(offsetof(struct tree_header, point_forces) == 112, "point_forces");
_Static_assert(offsetof(struct tree_header, splines) == 116, "splines");
_Static_assert(offsetof(struct tree_header, contact_rates) == 120, "contact_rates");
_Static_assert(offsetof(struct tree_header, wheel_rates) == 124, "wheel_rates");
_Static_assert(offsetof(struct tree_header, start_fraction) == 128, "start_fraction");
_Static_assert(offsetof(struct tree_header, energy_at_rest) == 136, "energy_at_rest");
_Static_assert(offsetof(struct tree_header, gravity) == 144, "gravity");
_Static_assert(sizeof(struct tree_header) == 176, "tree_header");

#endif
