/* Closures h(q1) = 0 (T28) and their derivatives at a node, q0 or q1. Every row is
 * between points of bodies a and b, or of the world (-1), s from the one to the other, e
 * directions fixed in the bodies (of a in the world unless it is `body_fixed`):
 *
 *     DISTANCE     |s|^2 - value^2, the value a coordinate where it has a place
 *     ALONG_AXIS   e_a . s
 *     AXES_COSINE  e_a . e_b - value
 *     SCREW        e_a . s - value theta modulo 2 pi value, theta the angle from e_zero to e_b
 *                  about e_a
 *
 * A derivative of a row is the power of two wrenches, on a and on b, on the motions of the
 * coordinates.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

static const struct body_pose WORLD = {.column = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};

/* The pose of a body, or of the world. */
INLINE const struct body_pose *pose_of(const struct tree_data *data, int body)
{
    return body < 0 ? &WORLD : data->poses + body;
}

/* Poses in the world (T4), and motions (turn, shift of the joint's origin) by every coordinate, of
 * the bodies on which constraints depend, at the configuration q. */
static void pose_bodies(const struct tree_model *model, const struct tree_data *data,
                        const double *q)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        if (!j->constrained) continue;
        const struct body_pose *parent = pose_of(data, j->parent);
        struct body_pose *b = data->poses + i;
        struct twist *moved = data->motions + j->v_index;
        b->p_size = parent->p_size + size_of(j->p);
        const double *at = q + j->q_index, along = j->ratio * *at;
        if (j->type < GENERATED) {
            v4 column[3] = {j->column[0], j->column[1], j->column[2]}, p = j->p;
            move_scalar(j, along, cos(along), sin(along), column, &p);
            b->p_size += fabs(slide_of(j) * along);
            for (int k = 0; k < 3; ++k) b->column[k] = combine(parent->column, column[k]);
            b->p = parent->p + combine(parent->column, p);
            *moved = unit_twist(j, b->column);
            continue;
        }
        struct joint_pose *o = data->joint_poses + j->multi_dof_index;
        const int n = j->n_dof;
        pose_at_node(model, j, at, o);
        for (int k = 0; k < 3; ++k)
            b->column[k] =
                combine(parent->column,
                        combine(j->column, vec(o->turn[k], o->turn[3 + k], o->turn[6 + k])));
        b->p = parent->p + combine(parent->column, j->p + combine(j->column, load(o->at)));
        b->p_size += size_of(load(o->at));
        for (int l = 0; l < n; ++l) {
            const struct twist z = twist_of(o->D, n, l);
            moved[l] = (struct twist){combine(b->column, z.w), combine(b->column, z.v)};
        }
    }
}

/* The configuration after the step with the unknowns of the last residual, into data->q1. */
INTERNAL void end_configuration(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const int q = j->q_index;
        if (j->v_index >= model->nv) continue;
        if (j->type < GENERATED)
            data->q1[q] = is_prescribed(j) && data->h == data->prescribed_time
                              ? data->u[model->n_forces + j->v_index - model->n_free]
                              : data->q[q] + data->h * data->bodies[i].rate;
        else if (j->constrained)
            joint_end(model, data, j, data->q1 + q, data->joint_poses[j->multi_dof_index].Ez);
    }
}

/* A wrench from its parts. */
INLINE struct twist wrench(v4 torque, v4 force) { return (struct twist){torque, force}; }

/* The derivative of the angle to e_b about e_a by a rotation of a; a rotation of b has its
 * opposite. */
INLINE v4 angle_gradient(v4 e_a, v4 e_b)
{
    const v4 n = cross(e_a, e_b);
    return cross(n, e_b) / dot(n, n);
}

/* Its change by changes de_a and de_b of the directions. */
INLINE v4 angle_gradient_derivative(v4 e_a, v4 e_b, v4 de_a, v4 de_b)
{
    const v4 n = cross(e_a, e_b), dn = cross(de_a, e_b) + cross(e_a, de_b);
    return (cross(dn, e_b) + cross(n, de_b) - 2.0 * dot(n, dn) * angle_gradient(e_a, e_b)) /
           dot(n, n);
}

/* `along - pitch theta` modulo 2 pi pitch, theta the angle from e_0 to e_b about e_a. */
static double screw_error(double along, double pitch, v4 e_a, v4 e_0, v4 e_b)
{
    const double x = dot(e_0, e_b), y = dot(cross(e_a, e_0), e_b), c = cos(along / pitch),
                 s = sin(along / pitch);
    return pitch * atan2(s * x - c * y, c * x + s * y);
}

/* The value of a constraint at the configuration q, bounds on its terms, and its wrenches. */
static struct constraint_value evaluate_constraint(const struct tree_data *data,
                                                   const struct constraint_row *c, const double *q)
{
    const struct body_pose *a = pose_of(data, c->a), *b = pose_of(data, c->b);
    const v4 zero = vec(0, 0, 0), at_b = b->p + combine(b->column, c->at_b);
    struct constraint_value o = {.from = a->p + combine(a->column, c->at_a),
                                 .e_a = c->body_fixed ? combine(a->column, c->e_a) : c->e_a};
    o.s = at_b - o.from;
    const double far = a->p_size + size_of(c->at_a) + b->p_size + size_of(c->at_b);
    if (c->type == DISTANCE) {
        o.length = c->length_q < 0 ? c->value : q[c->length_q];
        o.value = dot(o.s, o.s) - o.length * o.length;
        o.size = 2.0 * size_of(o.s) * far + o.length * o.length;
        o.force = 2.0 * size_of(o.s);
        o.torque = o.force * size_of(o.s);
        o.on_a = wrench(zero, -2.0 * o.s);
        o.on_b = wrench(zero, 2.0 * o.s);
    } else if (c->type == ALONG_AXIS || c->type == SCREW) {
        o.value = dot(o.e_a, o.s);
        o.size = size_of(o.e_a) * far;
        o.force = size_of(o.e_a);
        o.torque = o.force * size_of(o.s);
        o.on_a = wrench(c->body_fixed ? cross(o.e_a, o.s) : zero, -o.e_a);
        o.on_b = wrench(cross(o.s, o.e_a), o.e_a);
        if (c->type == SCREW) {
            o.e_b = combine(b->column, c->e_b);
            o.value = screw_error(o.value, c->value, o.e_a, combine(a->column, c->e_zero), o.e_b);
            o.size += fabs(c->value);
            const v4 turn = c->value * angle_gradient(o.e_a, o.e_b);
            o.torque += size_of(turn);
            o.on_a.w -= turn;
            o.on_b.w += turn;
        }
    } else {
        o.e_a = combine(a->column, c->e_a);
        o.e_b = combine(b->column, c->e_b);
        o.value = dot(o.e_a, o.e_b) - c->value;
        o.size = 1.0 + fabs(c->value);
        o.torque = size_of(o.e_a) * size_of(o.e_b);
        o.on_a = wrench(cross(o.e_a, o.e_b), zero);
        o.on_b = wrench(cross(o.e_b, o.e_a), zero);
    }
    return o;
}

/* A coordinate's motion about another point. */
INLINE struct twist motion_about(const struct tree_data *data, int body, int v, v4 point)
{
    const struct twist m = data->motions[v];
    return (struct twist){m.w, m.v + cross(m.w, point - data->poses[body].p)};
}

/* Derivatives of a constraint by all coordinates, g (nv). */
static void constraint_gradient(const struct tree_model *model, const struct tree_data *data,
                                const struct constraint_row *c, const struct constraint_value *o,
                                double *g)
{
    memset(g, 0, sizeof(double) * model->nv);
    for (int end = 0; end < 2; ++end)
        for (int i = end ? c->b : c->a; i >= 0; i = model->joints[i].parent)
            for (int l = 0, v = model->joints[i].v_index; l < model->joints[i].n_dof; ++l)
                g[model->joints[i].rate_index + l] +=
                    model->joints[i].ratio *
                    power(end ? o->on_b : o->on_a, motion_about(data, i, v + l, o->from));
    if (c->length_q >= 0) g[c->length_v] -= 2.0 * o->length;
}

/* Bounds on the terms of these derivatives, g (nv). */
INTERNAL void constraint_gradient_size(const struct tree_model *model,
                                       const struct tree_data *data,
                                       const struct constraint_row *c,
                                       const struct constraint_value *o, double *g)
{
    memset(g, 0, sizeof(double) * model->nv);
    for (int end = 0; end < 2; ++end)
        for (int i = end ? c->b : c->a; i >= 0; i = model->joints[i].parent)
            for (int l = 0, v = model->joints[i].v_index; l < model->joints[i].n_dof; ++l) {
                const double turn = size_of(data->motions[v + l].w),
                             lever = size_of(o->from - data->poses[i].p);
                g[model->joints[i].rate_index + l] +=
                    fabs(model->joints[i].ratio) * (turn * (o->torque + lever * o->force) +
                                                    size_of(data->motions[v + l].v) * o->force);
            }
    if (c->length_q >= 0) g[c->length_v] += 2.0 * o->length;
}

/* All constraints at the configuration q, into data->constraint_values. */
INTERNAL void evaluate_constraints(const struct tree_model *model, const struct tree_data *data,
                                   const double *q)
{
    pose_bodies(model, data, q);
    for (int r = 0; r < n_closures(model); ++r)
        data->constraint_values[r] = evaluate_constraint(data, model->constraints + r, q);
}

/* The same, and Dh(q) into all (m, nv). */
INTERNAL void constraint_jacobian(const struct tree_model *model, const struct tree_data *data,
                                  const double *q, double *all)
{
    evaluate_constraints(model, data, q);
    for (int r = 0; r < n_closures(model); ++r)
        constraint_gradient(model, data, model->constraints + r, data->constraint_values + r,
                            all + (size_t)model->nv * r);
}

/* Changes of the wrenches by motions x_a and x_b of the bodies, about the place of a's point. */
static void constraint_wrench_derivative(const struct constraint_row *c,
                                         const struct constraint_value *o, struct twist x_a,
                                         struct twist x_b, struct twist *on_a, struct twist *on_b)
{
    const v4 zero = vec(0, 0, 0), at_b = x_b.v + cross(x_b.w, o->s), s = at_b - x_a.v;
    if (c->type == DISTANCE) {
        const v4 force = 2.0 * o->s;
        *on_a = wrench(-cross(x_a.v, force), -2.0 * s);
        *on_b = wrench(cross(at_b, force) + 2.0 * cross(o->s, s), 2.0 * s);
    } else if (c->type == ALONG_AXIS || c->type == SCREW) {
        const v4 e = c->body_fixed ? cross(x_a.w, o->e_a) : zero,
                 moment = cross(e, o->s) + cross(o->e_a, s);
        *on_a = wrench((c->body_fixed ? moment : zero) - cross(x_a.v, o->e_a), -e);
        *on_b = wrench(cross(at_b, o->e_a) + cross(o->s, e), e);
        if (c->type == SCREW) {
            const v4 turn =
                c->value * angle_gradient_derivative(o->e_a, o->e_b, e, cross(x_b.w, o->e_b));
            on_a->w -= turn;
            on_b->w += turn;
        }
    } else {
        const v4 e_a = cross(x_a.w, o->e_a), e_b = cross(x_b.w, o->e_b),
                 moment = cross(e_a, o->e_b) + cross(o->e_a, e_b);
        *on_a = wrench(moment, zero);
        *on_b = wrench(-moment, zero);
    }
}

/* Whether a body carries another one, `end`, or is it. */
static int supports(const struct tree_model *model, int body, int end)
{
    int i = end;
    while (i > body) i = model->joints[i].parent;
    return i == body;
}

/* The change of coordinate l's motion, of body i, by the motion x of coordinate m of a body k that
 * carries it, or is it. */
static struct twist motion_derivative(const struct tree_model *model, const struct tree_data *data,
                                      int i, int l, int k, int m, struct twist x, v4 point)
{
    const struct twist y = motion_about(data, i, model->joints[i].v_index + l, point);
    struct twist out = {cross(x.w, y.w), cross(x.w, y.v) + cross(x.v, y.w)};
    const struct joint *j = model->joints + i;
    if (i != k || j->type < GENERATED) return out;
    const int n = j->n_dof;
    const double *d =
        data->joint_poses[j->multi_dof_index].dD + n * l + m; /* of D (6, n) by coordinates */
    const struct body_pose *b = data->poses + i;
    const v4 w = combine(b->column, vec(d[0], d[n * n], d[2 * n * n])),
             v = combine(b->column, vec(d[3 * n * n], d[4 * n * n], d[5 * n * n]));
    out.w += w;
    out.v += v + cross(w, point - b->p);
    return out;
}

/* Adds to a lane of `by` (nv, LANES) the derivatives of lam . Dh by coordinate m of body k. */
INTERNAL void constraint_hessian_row(const struct tree_model *model, const struct tree_data *data,
                                     int k, int m, double *by)
{
    const double *lam = data->z + model->n_free, ratio = model->joints[k].ratio;
    const int moved = model->joints[k].v_index + m;
    for (int r = 0; r < n_closures(model); ++r) {
        const struct constraint_row *c = model->constraints + r;
        const struct twist still = {vec(0, 0, 0), vec(0, 0, 0)};
        const int a = supports(model, k, c->a), b = supports(model, k, c->b);
        if (c->length_q >= 0 && moved == c->length_v) by[LANES * moved] -= 2.0 * lam[r];
        if (!a && !b) continue;
        const struct constraint_value *o = data->constraint_values + r;
        struct twist x = motion_about(data, k, moved, o->from), on[2];
        x = (struct twist){ratio * x.w, ratio * x.v};
        constraint_wrench_derivative(c, o, a ? x : still, b ? x : still, on, on + 1);
        for (int end = 0; end < 2; ++end)
            for (int i = end ? c->b : c->a; i >= 0; i = model->joints[i].parent) {
                const int carried = i >= k && (end ? b : a);
                for (int l = 0, v = model->joints[i].v_index; l < model->joints[i].n_dof; ++l) {
                    double change = power(on[end], motion_about(data, i, v + l, o->from));
                    if (carried)
                        change += power(end ? o->on_b : o->on_a,
                                        motion_derivative(model, data, i, l, k, m, x, o->from));
                    by[LANES * (model->joints[i].rate_index + l)] +=
                        lam[r] * model->joints[i].ratio * change;
                }
            }
    }
}
