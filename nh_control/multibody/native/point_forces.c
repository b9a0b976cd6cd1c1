/* Springs and dampers between points of two bodies, a and b, or of the world (-1). With s from the
 * one point to the other, l = |s|, in the middle of the step, a is pulled by (T24)
 *
 *     F = stiffness (1 - rest / l) s,   or   F = damping (s . s') / l^2 s,
 *
 * and b by -F. Springs have a potential: their forces and torques pass inward with the weights
 * (T7). Dampers act like wrenches (T25, external_wrenches.c). How F changes in Newton's equation:
 * low_rank_update.c.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* The twist of a body by a unit rate of its joint, about the origin of the body. */
INTERNAL struct twist unit_motion(const struct tree_data *data, const struct joint *j,
                                  const struct body *b, int l)
{
    if (j->type < GENERATED) return unit_twist(j, b->column);
    const v4 zero = vec(0, 0, 0);
    const int planar = j->n_dof == 3 && !j->quaternion, c = l + 2 * planar;
    if (c < 3) return (struct twist){b->column[c], zero};
    return (struct twist){zero, j->quaternion == QUATERNION_PLACED
                                    ? outward(parent_of(data, j), j->column[c - 3])
                                    : b->column[c - 3]};
}

/* Motions of a body by the rates of its joint (enum motion). */
INTERNAL void joint_motions(const struct tree_data *data, const struct joint *j,
                            const struct body *b, int kind, struct twist *all)
{
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    const double *const of[] = {w->Z0, w->Z1, w->Zz, w->Zq, w->Sz};
    const int n = j->n_dof, prescribed = is_prescribed(j);
    double by = kind <= AFTER ? data->h : 1.0;
    if (n == 1) by = kind <= BY_UNKNOWN ? data->half_step : 1.0;
    if (prescribed && (kind == BY_UNKNOWN || kind == BY_START)) by = 0.5;
    if (n > 1 && kind != UNIT) twists_of(b, of[kind], n, all);
    for (int l = 0; l < n; ++l) {
        const struct twist x = n > 1 && kind != UNIT ? all[l] : unit_motion(data, j, b, l);
        all[l] = (struct twist){by * x.w, by * x.v};
    }
}

/* Position of a point in the world. */
static v4 point_position(const struct tree_data *data, int body, v4 at)
{
    return body < 0 ? at : data->bodies[body].world_p + world_lever(data, body, at);
}
/* Velocity of a point, `lever` from the origin of its body. */
static v4 point_velocity(const struct tree_data *data, int body, v4 lever)
{
    const struct body *b = data->bodies + body;
    return body < 0 ? vec(0, 0, 0) : b->velocity + cross(b->omega, lever);
}

/* Bounds on the terms of a point's position, and of its velocity. */
static double position_size(const struct tree_model *model, const struct tree_data *data, int body,
                            v4 at)
{
    double far = size_of(at);
    for (; body >= 0; body = model->joints[body].parent) far += data->bodies[body].position_size;
    return far;
}
static double velocity_size(const struct tree_data *data, int body, v4 at)
{
    const struct body *b = data->bodies + body;
    return body < 0 ? 0.0 : b->velocity_size + b->omega_size * size_of(at);
}

/* s, and s' (T24). */
INTERNAL v4 separation(const struct tree_data *data, const struct point_force *c)
{
    return point_position(data, c->b, c->at_b) - point_position(data, c->a, c->at_a);
}
static v4 separation_rate(const struct tree_data *data, const struct point_force *c)
{
    const int a = c->a, b = c->b;
    return point_velocity(data, b, world_lever(data, b, c->at_b)) -
           point_velocity(data, a, world_lever(data, a, c->at_a));
}

/* F of a spring (T24); without a rest length the points may meet. */
static v4 spring_force(const struct point_force *c, v4 s)
{
    return (c->rest == 0.0 ? c->stiffness : c->stiffness * (1.0 - c->rest / sqrt(dot(s, s)))) * s;
}

/* dF/ds (3, 3) of a spring. */
INTERNAL void spring_stiffness(const struct point_force *c, v4 s, v4 *K)
{
    const double l = sqrt(dot(s, s)), tension = c->rest == 0.0 ? 0.0 : c->stiffness * c->rest / l;
    for (int i = 0; i < 3; ++i)
        K[i] = (c->stiffness - tension) * UNITS[i] +
               (tension ? tension / (l * l) * s[i] * s : 0.0 * s);
}

/* F of a damper (T24). */
static v4 damper_force(const struct point_force *c, v4 s, v4 rate)
{
    return c->damping * dot(s, rate) / dot(s, s) * s;
}

/* The change of a damper's F by changes of s and s'. */
static v4 damper_derivative(const struct point_force *c, v4 s, v4 rate, v4 ds, v4 drate)
{
    const double square = dot(s, s), fast = dot(s, rate) / square,
                 change = (dot(ds, rate) + dot(s, drate) - 2.0 * fast * dot(s, ds)) / square;
    return c->damping * (fast * ds + change * s);
}

/* The force on a of a spring; of a damper the force that, times h/2, acts before the step. */
INTERNAL v4 point_force_on_a(const struct tree_model *model, const struct tree_data *data,
                             const struct point_force *c)
{
    const v4 s = separation(data, c);
    if (c < model->point_forces + model->n_springs) return spring_force(c, s);
    return 2.0 * model->start_fraction * damper_force(c, s, separation_rate(data, c));
}

/* Adds the force of a spring, with a bound on its terms, to a body (T7). */
static void apply_spring(const struct tree_data *data, int body, v4 at, v4 force, double size)
{
    if (body < 0) return;
    struct body *b = data->bodies + body;
    const v4 lever = outward(b, at);
    b->gravity_torque += cross(lever, force);
    b->spring_force += force;
    b->torque_size += size_of(at) * size;
    b->spring_force_size += size;
}

/* Adds the forces of all springs. */
INTERNAL void apply_springs(const struct tree_model *model, const struct tree_data *data,
                            int sized)
{
    for (int i = 0; i < model->n_springs; ++i) {
        const struct point_force *c = model->point_forces + i;
        const int a = c->a, b = c->b;
        const v4 force = point_force_on_a(model, data, c);
        const double size =
            sized ? fabs(c->stiffness) * (position_size(model, data, a, c->at_a) +
                                          position_size(model, data, b, c->at_b) + c->rest)
                  : 0.0;
        apply_spring(data, a, c->at_a, force, size);
        apply_spring(data, b, c->at_b, -force, size);
    }
}

/* The forces of a damper on its ends that are not the world's; their number. */
INTERNAL int damper_wrenches(const struct tree_data *data, const struct point_force *c,
                             struct external_wrench *end)
{
    const v4 force = damper_force(c, separation(data, c), separation_rate(data, c));
    int count = 0;
    if (c->a >= 0)
        end[count++] = (struct external_wrench){.body = c->a, .at = c->at_a, .e = force};
    if (c->b >= 0)
        end[count++] = (struct external_wrench){.body = c->b, .at = c->at_b, .e = -force};
    return count;
}

/* Adds by e_k . dx to three rows (3, nv), dx the motion of a point by each coordinate that carries
 * it. */
static void add_point_jacobian(const struct tree_model *model, const struct tree_data *data,
                               int body, v4 at, const v4 *e, double by, int kind, double *rows)
{
    v4 lever = world_lever(data, body, at);
    for (int i = body; i >= 0; i = model->joints[i].parent) {
        const struct joint *j = model->joints + i;
        const struct body *b = data->bodies + i;
        struct twist all[MAX_DOF];
        joint_motions(data, j, b, kind, all);
        for (int l = 0; l < j->n_dof; ++l) {
            const v4 moved = by * j->ratio * (all[l].v + cross(all[l].w, lever));
            for (int k = 0; k < 3; ++k)
                rows[model->nv * k + j->rate_index + l] += dot(e[k], moved);
        }
        lever += b->p;
    }
}

/* The rows (3, nv) of three forces e on a, and -e on b. */
INTERNAL void point_force_rows(const struct tree_model *model, const struct tree_data *data,
                               const struct point_force *c, const v4 *e, double by, int kind,
                               double *rows)
{
    memset(rows, 0, sizeof(double) * 3 * model->nv);
    add_point_jacobian(model, data, c->a, c->at_a, e, by, kind, rows);
    add_point_jacobian(model, data, c->b, c->at_b, e, -by, kind, rows);
}

/* Adds bounds on the terms of the generalized forces of a torque and a force at a point. */
INTERNAL void add_wrench_sizes(const struct tree_model *model, const struct tree_data *data,
                               int body, v4 at, double torque, double force)
{
    double lever = size_of(at);
    for (int i = body; i >= 0; i = model->joints[i].parent) {
        const struct joint *j = model->joints + i;
        const struct body *b = data->bodies + i;
        for (int l = 0; l < j->n_dof; ++l) {
            const struct twist unit = unit_motion(data, j, b, l);
            data->r_size[j->rate_index + l] +=
                fabs(j->ratio) *
                (force * (size_of(unit.v) + lever * size_of(unit.w)) + torque * size_of(unit.w));
        }
        lever += b->position_size;
    }
}

/* The same for all dampers. */
INTERNAL void add_damper_sizes(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = model->n_springs; i < model->n_springs + model->n_dampers; ++i) {
        const struct point_force *c = model->point_forces + i;
        const int a = c->a, b = c->b;
        const double size = fabs(data->h * c->damping) *
                            (velocity_size(data, a, c->at_a) + velocity_size(data, b, c->at_b));
        add_wrench_sizes(model, data, a, c->at_a, 0.0, size);
        add_wrench_sizes(model, data, b, c->at_b, 0.0, size);
    }
}

/* Changes of a damper's F by the unknowns, or the ends of prescribed coordinates, and by the start
 * of all coordinates that carry one of its ends; `by` is the sign of that end in s. z and q are
 * (3, nv). */
static void add_damper_jacobian(const struct tree_model *model, const struct tree_data *data,
                                const struct point_force *c, int body, v4 at, double by, double *z,
                                double *q)
{
    const v4 s = separation(data, c), rate = separation_rate(data, c);
    v4 lever = world_lever(data, body, at);
    const v4 velocity = point_velocity(data, body, lever);
    for (int i = body; i >= 0; i = model->joints[i].parent) {
        const struct joint *j = model->joints + i;
        const struct body *b = data->bodies + i;
        const int n = j->n_dof;
        const v4 own = velocity - b->parent_velocity - cross(b->parent_omega, lever);
        struct twist moved[MAX_DOF], faster[MAX_DOF];
        for (int start = 0; start < 2; ++start) {
            joint_motions(data, j, b, start ? BY_START : BY_UNKNOWN, moved);
            joint_motions(data, j, b, RATE, faster);
            if (n > 1 && start) twists_of(b, data->multi_dof[j->multi_dof_index].Sq, n, faster);
            const double per = n > 1              ? 1.0
                               : is_prescribed(j) ? (start ? -1 : 1) / data->h
                                                  : !start;
            for (int l = 0; l < n; ++l) {
                const struct twist x = moved[l], w = faster[l];
                const v4 ds = x.v + cross(x.w, lever),
                         drate = cross(b->parent_omega, ds) + cross(x.w, own) +
                                 per * (w.v + cross(w.w, lever)),
                         change = by * j->ratio * damper_derivative(c, s, rate, ds, drate);
                for (int k = 0; k < 3; ++k)
                    (start ? q : z)[model->nv * k + j->rate_index + l] += change[k];
            }
        }
        lever += b->p;
    }
}

/* The same for both ends. */
INTERNAL void damper_jacobian(const struct tree_model *model, const struct tree_data *data,
                              const struct point_force *c, double *z, double *q)
{
    memset(z, 0, sizeof(double) * 3 * model->nv);
    memset(q, 0, sizeof(double) * 3 * model->nv);
    add_damper_jacobian(model, data, c, c->a, c->at_a, -1.0, z, q);
    add_damper_jacobian(model, data, c, c->b, c->at_b, 1.0, z, q);
}

/* Adds the changes of a damper's F to F_z and F_q of `wrench_derivatives`. */
INTERNAL void add_damper_derivatives(const struct tree_model *model, const struct tree_data *data,
                                     const struct point_force *c, int n, const int *place,
                                     double *F_z, double *F_q)
{
    const int nv = model->nv;
    double *on = data->damper_rows, *z = on + 3 * nv, *q = z + 3 * nv;
    damper_jacobian(model, data, c, z, q);
    point_force_rows(model, data, c, UNITS, 1.0, UNIT, on);
    for (int v = 0; v < nv; ++v)
        for (int w = 0; w < nv && place[v] >= 0; ++w)
            for (int k = 0; k < 3 && place[w] >= 0; ++k) {
                const double by = model->start_fraction * data->h * on[nv * k + v];
                F_z[n * place[v] + place[w]] += by * z[nv * k + w];
                F_q[n * place[v] + place[w]] += by * q[nv * k + w];
            }
}
