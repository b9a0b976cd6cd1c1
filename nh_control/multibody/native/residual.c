/* The discrete Euler-Lagrange equations of a tree (T2, T3, T8), in time linear in the bodies
 * [lee2016]: the recursive Newton-Euler algorithm [featherstone2008, table 5.1] for momenta
 * instead of forces. With L_q and L_v the derivatives of the Lagrangian in the middle of the step,
 *
 *     r = rho + h/2 L_q - L_v + alpha h f,   rho1 = h/2 L_q + L_v + (1 - alpha) h f,
 *     L_q = S . a + [nu, S] . b,   L_v = S . b,
 *
 * S the unit twist of a joint; a = (gravity_torque, load_on) the wrench of gravity and springs and
 * b the momentum of all that the joint carries; nu the twist that the parent gives the body; alpha
 * = start_fraction.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* What a sweep computes: the residual of a tree that does not move, of one that moves, or that and
 * bounds on its terms. */
enum terms { AT_REST, MOVING, SIZED };

/* The rate of a scalar joint: an unknown, or given by the ends of a prescribed coordinate. */
INTERNAL double rate_of(const struct tree_model *model, const struct tree_data *data,
                        const struct joint *j, const double *z)
{
    const int v = j->rate_index;
    return j->ratio * (is_prescribed(j)
                           ? (data->u[model->n_forces + v - model->n_free] - data->q[j->q_index]) /
                                 data->prescribed_time
                           : z[v]);
}

/* Cosines and sines of the angles at the start, for all residuals of a step. */
INTERNAL void start_turns(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        if (!rotates(j)) continue;
        const double angle = j->ratio * data->q[j->q_index], c = cos(angle), s = sin(angle);
        data->bodies[i].cosine = c; /* one call for both */
        data->bodies[i].sine = s;
    }
}

/* Cosine c and sine s of an angle become those of the angle plus x: by Taylor polynomials, whose
 * next terms are below round-off, where x is small. `end` is the sum. */
INLINE void turn_further(double x, double end, double *c, double *s)
{
    if (!(fabs(x) <= 0.1)) {
        *c = cos(end);
        *s = sin(end);
        return;
    }
    const double y = x * x,
                 sine = x + x * (y * (-1.0 / 6 +
                                      y * (1.0 / 120 + y * (-1.0 / 5040 + y * (1.0 / 362880))))),
                 less = y * (-1.0 / 2 +
                             y * (1.0 / 24 + y * (-1.0 / 720 +
                                                  y * (1.0 / 40320 + y * (-1.0 / 3628800))))),
                 c0 = *c, s0 = *s;
    *c = c0 + (c0 * less - s0 * sine);
    *s = s0 + (s0 * less + c0 * sine);
}

/* Rotation and position of a body on a scalar joint in the middle of the step (T4). */
INLINE void pose_scalar(const struct tree_data *data, const struct joint *j,
                        const struct body *parent, struct body *b, double z, enum terms terms,
                        int plane)
{
    const double by = data->half_step * z, q = j->ratio * data->q[j->q_index] + by;
    double c = b->cosine, s = b->sine;
    if (rotates(j) && terms != AT_REST) turn_further(by, q, &c, &s);
    if (plane) {
        for (int i = 0; i < 2; ++i)
            b->column[i] =
                parent->column[0] * j->column[i][0] + parent->column[1] * j->column[i][1];
        b->column[2] = parent->column[2] * j->column[2][2];
    } else
        for (int i = 0; i < 3; ++i) b->column[i] = outward(parent, j->column[i]);
    b->p = outward(parent, j->p);
    move_scalar(j, q, c, s, b->column, &b->p);
    b->rate = z;
}

/* The same for a joint with several rates, by its generated functions (T4). */
INLINE void pose_multi_dof(const struct tree_model *model, const struct tree_data *data,
                           const struct joint *j, const struct body *parent, struct body *b,
                           const double *z)
{
    struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    joint_midpoint(model, data, j, z, w);
    for (int i = 0; i < 3; ++i)
        b->column[i] = outward(parent, combine(j->column, vec(w->rotation[i], w->rotation[3 + i],
                                                              w->rotation[6 + i])));
    b->p = outward(parent, j->p + combine(j->column, load(w->position)));
}

/* A bound on the terms of the velocity in nu (T5). */
INLINE double given_speed(const struct body *parent, const struct body *b)
{
    return parent->velocity_size + b->position_size * parent->omega_size;
}

/* Bounds on the terms that add up to the motion of a body, to its position in the parent and to
 * its own wrenches. Their sum may be zero although the terms are not. */
INLINE void size_terms(const struct tree_model *model, const struct tree_data *data,
                       const struct joint *j, const struct body *parent, struct body *b)
{
    double turn = 0.0, shift = 0.0;
    b->position_size = size_of(j->p);
    if (j->type < GENERATED) {
        if (rotates(j)) turn = fabs(b->rate);
        shift = fabs(slide_of(j) * b->rate);
        b->position_size += fabs(slide_of(j) * j->ratio * data->q[j->q_index]);
    } else {
        const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
        turn = size_of(load(w->twist));
        shift = size_of(load(w->twist + 3));
        b->position_size += size_of(load(w->position));
    }
    b->position_size += fabs(data->half_step) * shift;
    b->omega_size = parent->omega_size + turn;
    b->velocity_size = given_speed(parent, b) + shift;
    b->torque_size = size_of(b->first_moment) * size_of(model->gravity);
    b->angular_size =
        size_of(b->first_moment) * b->velocity_size +
        (size_of(j->inertia[0]) + size_of(j->inertia[1]) + size_of(j->inertia[2])) * b->omega_size;
    b->linear_size = j->mass * b->velocity_size + size_of(b->first_moment) * b->omega_size;
}

/* Twist and momentum of a body that does not move. */
INLINE void rest(struct body *b)
{
    const v4 zero = vec(0, 0, 0);
    b->parent_omega = b->parent_velocity = b->omega = b->velocity = zero;
    b->angular_momentum = b->linear_momentum = zero;
}

/* Twist (T5) and momentum (T6) of a body alone. */
INLINE void move(const struct tree_data *data, const struct joint *j, const struct body *parent,
                 struct body *b, int multi_dof, int plane)
{
    b->omega = b->parent_omega = parent->omega;
    b->velocity = b->parent_velocity = parent->velocity - cross_turn(b->p, parent->omega, plane);
    if (multi_dof) {
        const double *s = data->multi_dof[j->multi_dof_index].twist;
        b->omega += outward(b, load(s));
        b->velocity += outward(b, load(s + 3));
    } else {
        const double slide = slide_of(j);
        if (rotates(j)) b->omega += b->rate * b->column[2];
        if (slide != 0.0) b->velocity += slide * b->rate * axis_of(j, b->column);
    }
    b->angular_momentum = cross(b->first_moment, b->velocity);
    b->angular_momentum += plane ? j->inertia[2][2] * b->omega
                                 : outward(b, combine(j->inertia, inward(b, b->omega)));
    b->linear_momentum = j->mass * b->velocity - cross_turn(b->first_moment, b->omega, plane);
}

/* From the root to the leaves: poses (T4), twists (T5), and the momentum (T6) and torque of
 * gravity (T7) of each body alone. */
INLINE void outward_sweep(const struct tree_model *model, const struct tree_data *data,
                          const double *z, enum terms terms, int plane)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const struct body *parent = parent_of(data, j);
        struct body *b = data->bodies + i;
        if (j->mode == IDLE) {
            b->rate = rate_of(model, data, j, z);
            continue;
        }
        const int multi_dof = !plane && j->type >= GENERATED;
        if (multi_dof) pose_multi_dof(model, data, j, parent, b, z);
        else pose_scalar(data, j, parent, b, rate_of(model, data, j, z), terms, plane);
        b->first_moment = outward(b, j->first_moment);
        b->gravity_torque = cross(b->first_moment, model->gravity);
        if (terms == AT_REST) rest(b);
        else move(data, j, parent, b, multi_dof, plane);
        if (model->n_springs + model->n_dampers) {
            b->world_p = b->p + (j->parent < 0 ? vec(0, 0, 0) : parent->world_p);
            b->spring_force = vec(0, 0, 0);
            b->spring_force_size = 0.0;
        }
        if (terms == SIZED) size_terms(model, data, j, parent, b);
    }
}

/* A bound on the terms of the force on all that a body carries (T7). */
INLINE double load_size(const struct tree_model *model, const struct joint *j,
                        const struct body *b)
{
    return j->carried_mass * size_of(model->gravity) + b->spring_force_size;
}

/* Bounds on the terms of mu = a + ad_nu^T b (T9): torque and force. */
INLINE double torque_size(const struct body *parent, const struct body *b)
{
    return b->torque_size + parent->omega_size * b->angular_size +
           given_speed(parent, b) * b->linear_size;
}
INLINE double force_size(const struct tree_model *model, const struct joint *j,
                         const struct body *parent, const struct body *b)
{
    return load_size(model, j, b) + parent->omega_size * b->linear_size;
}

/* Rows of a joint of several rates (T9), in the axes of the body. */
static void multi_dof_residual(const struct tree_model *model, const struct tree_data *data,
                               const struct joint *j, const struct body *b, int sized)
{
    struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    const int n = j->n_dof, v = j->v_index;
    w->mu_torque = inward(b, b->gravity_torque + cross(b->angular_momentum, b->parent_omega) +
                                 cross(b->linear_momentum, b->parent_velocity));
    w->mu_force = inward(b, load_on(model, j, b) + cross(b->linear_momentum, b->parent_omega));
    w->b_torque = inward(b, b->angular_momentum);
    w->b_force = inward(b, b->linear_momentum);
    const struct body *parent = parent_of(data, j);
    double torque = 0.0, force = 0.0;
    if (sized) torque = torque_size(parent, b), force = force_size(model, j, parent, b);
    for (int l = 0; l < n; ++l) {
        const double *D = w->Z0 + l, *S = w->S0 + l;
        const v4 zw = vec(D[0], D[n], D[2 * n]), zv = vec(D[3 * n], D[4 * n], D[5 * n]);
        const v4 sw = vec(S[0], S[n], S[2 * n]), sv = vec(S[3 * n], S[4 * n], S[5 * n]);
        data->r[v + l] =
            data->rho[v + l] + data->h * (dot(zw, w->mu_torque) + dot(zv, w->mu_force) +
                                          dot(sw, w->b_torque) + dot(sv, w->b_force));
        if (!sized) continue;
        data->r_size[v + l] =
            fabs(data->rho[v + l]) +
            fabs(data->h) * (size_of(zw) * torque + size_of(zv) * force +
                             size_of(sw) * b->angular_size + size_of(sv) * b->linear_size);
    }
}

/* From the leaves to the root: the row of each joint (T2, T8), then momenta (T6), and weights and
 * springs (T7), of a body are added to those of its parent. */
INLINE void inward_sweep(const struct tree_model *model, const struct tree_data *data,
                         const double *z, double turns, enum terms terms, int plane)
{
    const double h = fabs(data->h), k = fabs(data->half_step);
    const int sized = terms == SIZED, moves = terms != AT_REST;
    for (int i = model->n_bodies - 1; i >= 0; --i) {
        const struct joint *j = model->joints + i;
        const struct body *b = data->bodies + i;
        const int v = j->v_index;
        if (j->mode == IDLE) continue;
        if (!plane && j->type >= GENERATED) multi_dof_residual(model, data, j, b, sized);
        else {
            double low = 0.0, high = 0.0, sizes = 0.0;
            const v4 S = axis_of(j, b->column);
            const double slide = slide_of(j);
            if (rotates(j)) {
                v4 all = S * b->gravity_torque;
                if (moves) all += cross_turn(b->parent_velocity, S, plane) * b->linear_momentum;
                if (moves && !plane) all += cross(b->parent_omega, S) * b->angular_momentum;
                low = sum(all);
                if (moves) high = dot(S, b->angular_momentum);
                if (sized) sizes = k * torque_size(parent_of(data, j), b) + b->angular_size;
            }
            if (slide != 0.0) {
                low += slide * sum(S * load_on(model, j, b) -
                                   cross_turn(S, b->parent_omega, plane) * b->linear_momentum);
                high += slide * dot(S, b->linear_momentum);
                if (sized)
                    sizes += fabs(slide) *
                             (k * force_size(model, j, parent_of(data, j), b) + b->linear_size);
            }
            const struct spring_value spring = springs_at(model, j, middle_of(data, j, b));
            data->dL_dq[v] = low -= spring.slope;
            data->dL_dv[v] = high;
            if (j->mode == MIMIC) data->r_size[v] = turns * sizes;
            if (j->mode == FREE || j->mode == SHARED) {
                data->r[v] =
                    data->rho[v] + data->half_step * low - high +
                    model->start_fraction * data->h * (data->joint_force[v] - resistance(j, z[v]));
                if (sized)
                    data->r_size[v] = fabs(data->rho[v]) + turns * sizes + k * spring.size +
                                      h * (fabs(data->joint_force[v]) + fabs(resistance(j, z[v])));
            }
        }
        if (j->parent >= 0) {
            struct body *parent = data->bodies + j->parent;
            parent->gravity_torque += b->gravity_torque + cross(b->p, load_on(model, j, b));
            if (moves) {
                parent->angular_momentum += b->angular_momentum + cross(b->p, b->linear_momentum);
                parent->linear_momentum += b->linear_momentum;
            }
            if (model->n_springs) parent->spring_force += b->spring_force;
            if (!sized) continue;
            parent->torque_size += b->torque_size + b->position_size * load_size(model, j, b);
            if (model->n_springs) parent->spring_force_size += b->spring_force_size;
            parent->angular_size += b->angular_size + b->position_size * b->linear_size;
            parent->linear_size += b->linear_size;
        }
    }
}

/* Adds by_low L_q + by_high L_v of mimic joints to the rows of the joints that they follow
 * (section 6). */
INTERNAL void add_mimic_rows(const struct tree_model *model, const struct tree_data *data,
                             double by_low, double by_high, double *row)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        if (j->mode == MIMIC)
            row[j->rate_index] +=
                j->ratio * (by_low * data->dL_dq[j->v_index] + by_high * data->dL_dv[j->v_index]);
    }
}

/* The same for the bounds on their terms. */
static void add_mimic_sizes(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        if (j->mode == MIMIC)
            data->r_size[j->rate_index] += fabs(j->ratio) * data->r_size[j->v_index];
    }
}

/* Whether no body moves. */
INLINE int rests(const struct tree_model *model, const double *z)
{
    if (model->n_free < model->nv) return 0; /* a prescribed coordinate may */
    for (int i = 0; i < model->n_free; ++i)
        if (z[i] != 0.0) return 0;
    return 1;
}

/* Both sweeps, with constants so that the compiler makes a version for each. */
INLINE void sweep(const struct tree_model *model, const struct tree_data *data, const double *z,
                  double turns, int plane)
{
    if (turns > 0.0) {
        outward_sweep(model, data, z, SIZED, plane);
        apply_springs(model, data, 1);
        inward_sweep(model, data, z, turns, SIZED, plane);
    } else if (rests(model, z)) {
        outward_sweep(model, data, z, AT_REST, plane);
        apply_springs(model, data, 0);
        inward_sweep(model, data, z, 0.0, AT_REST, plane);
    } else {
        outward_sweep(model, data, z, MOVING, plane);
        apply_springs(model, data, 0);
        inward_sweep(model, data, z, 0.0, MOVING, plane);
    }
}

/* r (T2) and bounds of its terms, into data->r and data->r_size; r alone where `turns` is 0.
 * Angles of many turns have the round-off of their own size. */
INTERNAL void residual(const struct tree_model *model, const struct tree_data *data,
                       const double *z, double turns)
{
    memcpy(data->z, z, sizeof(double) * model->n_free);
    if (model->planar) sweep(model, data, z, turns, 1);
    else sweep(model, data, z, turns, 0);
    if (model->n_wrenches + model->n_dampers) add_wrench_residual(model, data, turns > 0.0);
    if (!model->n_shared) return;
    add_mimic_rows(model, data, data->half_step, -1.0, data->r);
    if (turns > 0.0) add_mimic_sizes(model, data);
}

/* The largest angle of joints that rotate at the start, at least 1. */
INTERNAL double largest_turn(const struct tree_model *model, const struct tree_data *data)
{
    double most = 1.0;
    for (int i = 0; i < model->n_bodies; ++i)
        if (rotates(model->joints + i))
            most = fmax(most, fabs(model->joints[i].ratio * data->q[model->joints[i].q_index]));
    return most;
}
