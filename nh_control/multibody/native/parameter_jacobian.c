/* Changes of a model's numbers: first derivatives of a step by its parameters (T33), with the same
 * factors as derivatives by the state. a[SLOPES] lists the derivatives of the joints' numbers by
 * the parameters.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Where the jumps of LANES columns lie. */
INTERNAL struct parameter_jumps jumps_at(const struct tree_model *model, vn *room)
{
    struct parameter_jumps s = {.own = (vn(*)[9])room};
    s.extra = (vn(*)[2])(s.own + model->n_bodies);
    s.weight = (vn *)(s.extra + model->n_rates);
    return s;
}

/* Changes of the wrenches (T6, T7) of a body alone by one of its numbers. */
static void own_wrench(const struct tree_model *model, const struct body *b, int place, v4 *y)
{
    v4 torque = vec(0, 0, 0), moment = torque, force = torque;
    static const int rows[6] = {0, 1, 2, 0, 0, 1}, columns[6] = {0, 1, 2, 1, 2, 2};
    if (place == BY_MASS) force = b->velocity;
    else if (place < BY_INERTIA) {
        const v4 c = b->column[place - BY_FIRST];
        torque = cross(c, model->gravity);
        moment = cross(c, b->velocity);
        force = -cross(c, b->omega);
    } else {
        const int row = rows[place - BY_INERTIA], column = columns[place - BY_INERTIA];
        moment = dot(b->column[column], b->omega) * b->column[row];
        if (row != column) moment += dot(b->column[row], b->omega) * b->column[column];
    }
    pack(torque, moment, force, y, model->planar);
}

/* Adds a motion or a wrench, `by` times, to a lane. */
INLINE void add_to_lane_in(vn *to, int lane, double by, const v4 *x, int plane)
{
    for (int i = 0; i < components(plane); ++i) to[i][lane] += by * component(x, i, plane);
}

/* The same for trees in space and in a plane. */
INTERNAL void add_to_lane(const struct tree_model *model, vn *to, int lane, double by, const v4 *x)
{
    if (model->planar) add_to_lane_in(to, lane, by, x, 1);
    else add_to_lane_in(to, lane, by, x, 0);
}

/* The position of a joint in its parent changes the velocity of its body (T5) and the wrenches of
 * the parent (T6, T7). */
static void by_position(const struct tree_model *model, const struct tree_data *data, int body,
                        int axis, int lane, double by, vn (*c)[9], vn *right,
                        const struct parameter_jumps *s)
{
    const struct joint *j = model->joints + body;
    if (j->parent < 0) return;
    const struct body *b = data->bodies + body, *parent = data->bodies + j->parent;
    const struct newton_row *o = data->rows + j->v_index;
    v4 phi[3], column[3], y[3];
    const v4 zero = vec(0, 0, 0), moved = parent->column[axis];
    pack(zero, zero, -cross(moved, parent->omega), phi, model->planar);
    times_columns(b->H, phi, column, model->planar);
    pack(j->carried_mass * cross(moved, model->gravity), cross(moved, b->linear_momentum), zero, y,
         model->planar);
    add_wrench_to_parent(b->p, column, y, model->planar);
    add_to_lane(model, c[j->parent], lane, by, y);
    add_to_lane(model, s->own[body], lane, by, phi);
    for (int l = 0; l < j->n_dof && !is_prescribed(j); ++l) {
        right[j->v_index + l][lane] += by * inner(o[l].row, phi, model->planar);
        s->extra[j->v_index + l][1][lane] += by * inner(o[l].row1, phi, model->planar);
    }
}

/* The number by which right-hand sides of a scalar joint are divided: its pivot. */
INLINE double divisor_of(const struct tree_data *data, const struct joint *j)
{
    return j->mode != FREE ? 1.0 : data->rows[j->v_index].pivot;
}

/* The derivative of the resistance of a joint by one of its numbers. */
INLINE double resistance_by(const struct joint *j, int place, double rate)
{
    const double sign = smooth_sign(j, rate), length = hypot(rate, j->friction_velocity);
    return place == BY_DAMPING    ? rate
           : place == BY_FRICTION ? sign
                                  : -j->friction * sign * j->friction_velocity / length / length;
}

/* A spring, a damper or friction on a coordinate changes its row (T2, T8). */
static void by_element(const struct tree_model *model, const struct tree_data *data, int body,
                       int place, int lane, double by, vn *right, const struct parameter_jumps *s)
{
    const struct joint *j = model->joints + body;
    const int v = j->v_index;
    const double rate = data->bodies[body].rate, q = data->q[j->q_index] + data->half_step * rate;
    if (is_prescribed(j)) return;
    const int resists = place >= BY_DAMPING;
    const double force = resists ? -data->h * resistance_by(j, place, rate) : 0.0;
    const double before = resists                  ? model->start_fraction * force
                          : place == BY_REST_FORCE ? data->half_step
                                                   : -data->half_step * q;
    const double after = resists ? (1 - model->start_fraction) * force : before;
    right[v][lane] += by * before / divisor_of(data, j);
    s->extra[v][1][lane] += by * after;
}

/* Marks a body as one with jumps. */
static void mark_jump(const struct tree_model *model, int body, unsigned char *state,
                      const struct parameter_jumps *s)
{
    const struct joint *j = model->joints + body;
    if (!(state[body] & OF_NUMBERS)) {
        memset(s->own[body], 0, sizeof *s->own);
        memset(s->extra[j->v_index], 0, sizeof *s->extra * j->n_dof);
    }
    state[body] |= HAS_WRENCHES | MOVES | OF_NUMBERS;
}

/* Adds changes of the mass that a body carries. */
static void add_weights(int body, vn by, unsigned char *state, const struct parameter_jumps *s)
{
    if (state[body] & HAS_WEIGHT) s->weight[body] += by;
    else s->weight[body] = by;
    state[body] |= HAS_WEIGHT;
}

/* Into a lane, the change by parameter `number`, whose derivatives begin at `slope`; the last body
 * that it changes. */
INTERNAL int begin_parameter(const struct tree_model *model, const struct tree_data *data,
                             const struct parameter_derivative *slope, int number, int lane,
                             vn (*c)[9], vn *right, unsigned char *state,
                             const struct parameter_jumps *s)
{
    int last = 0;
    for (; slope->parameter == number; ++slope) {
        const int body = slope->joint, place = slope->quantity;
        mark_jump(model, body, state, s);
        if (place >= BY_STIFFNESS)
            by_element(model, data, body, place, lane, slope->value, right, s);
        else if (place >= BY_POSITION)
            by_position(model, data, body, place - BY_POSITION, lane, slope->value, c, right, s);
        else {
            v4 y[3];
            own_wrench(model, data->bodies + body, place, y);
            add_to_lane(model, c[body], lane, slope->value, y);
            if (place == BY_MASS) {
                vn by = {0};
                by[lane] = slope->value;
                add_weights(body, by, state, s);
            }
        }
        if (body > last) last = body;
    }
    return last;
}

/* The change of a carried mass in the rows of a body, and in the torque of gravity on its parent
 * (T7, T8). */
INTERNAL void pass_weight(const struct tree_model *model, const struct tree_data *data, int i,
                          vn (*c)[9], vn *right, unsigned char *state,
                          const struct parameter_jumps *s)
{
    const struct joint *j = model->joints + i;
    const struct body *b = data->bodies + i;
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    const int n = j->n_dof, v = j->v_index, parent = j->parent;
    const v4 gravity = inward(b, model->gravity);
    double before[MAX_DOF] = {0}, after[MAX_DOF] = {0};
    mark_jump(model, i, state, s);
    for (int l = 0; l < n && n > 1; ++l) {
        before[l] = data->h * dot(twist_of(w->Z0, n, l).v, gravity);
        after[l] = data->h * dot(twist_of(w->Z1, n, l).v, gravity);
    }
    if (n > 1) solve_multi_dof(w, n, before, before);
    else if (slide_of(j) != 0.0 && !is_prescribed(j)) {
        after[0] = data->half_step * slide_of(j) * gravity[rotates(j) ? 2 : 0];
        before[0] = after[0] / divisor_of(data, j);
    }
    for (int l = 0; l < n; ++l) {
        right[v + l] += before[l] * s->weight[i];
        s->extra[v + l][1] += after[l] * s->weight[i];
    }
    if (parent < 0) return;
    const v4 zero = vec(0, 0, 0);
    v4 torque[3];
    pack(cross(b->p, model->gravity), zero, zero, torque, model->planar);
    add_weights(parent, s->weight[i], state, s);
    for (int k = 0; k < components(model->planar); ++k)
        c[parent][k] += component(torque, k, model->planar) * s->weight[i];
    state[parent] |= HAS_WRENCHES | MOVES;
}

/* The change of a scalar joint's rows and motion by h: half the rate moves the middle; a
 * prescribed joint is slower. */
static void scalar_by_step(const struct tree_model *model, const struct tree_data *data, int i,
                           v4 *phi, v4 *column, vn *right, const struct parameter_jumps *s)
{
    const struct joint *j = model->joints + i;
    const int v = j->v_index;
    const struct newton_row *o = data->rows + v;
    const double rate = data->bodies[i].rate, half = 0.5 * rate, slower = -rate / data->h,
                 force = data->joint_force[v] - resistance(j, rate);
    for (int c = 0; c < parts(model->planar); ++c) {
        phi[c] = is_prescribed(j) ? slower * (o->phi[c] - data->half_step * o->phi_q[c])
                                  : half * o->phi_q[c];
        column[c] = is_prescribed(j) ? slower * (o->column[c] - data->half_step * o->column_q[c])
                                     : half * o->column_q[c];
    }
    if (is_prescribed(j)) {
        s->extra[v][1][0] += slower;
        return;
    }
    right[v][0] += (half * o->source + 0.5 * data->dL_dq[v] + model->start_fraction * force) /
                   divisor_of(data, j);
    s->extra[v][0][0] += v < model->nv ? rate : 0.0;
    s->extra[v][1][0] +=
        half * o->source1 + 0.5 * data->dL_dq[v] + (1 - model->start_fraction) * force;
}

/* The same for a joint with several rates. */
static void multi_dof_by_step(const struct tree_model *model, const struct tree_data *data, int i,
                              v4 *phi, v4 *column, vn *right, const struct parameter_jumps *s)
{
    const struct joint *j = model->joints + i;
    const struct body *b = data->bodies + i;
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    const int v = j->v_index, n = j->n_dof;
    const struct newton_row *o = data->rows + v;
    double mu[6], wrench[6], Zh[6], Sh[6], before[MAX_DOF], after[MAX_DOF], end[MAX_DOF];
    joint_wrenches(w, mu, wrench);
    joint_by_step(model, data, j, mu, wrench, Zh, Sh, before, after, end);
    struct twist D, S, Z0[MAX_DOF], Z1[MAX_DOF];
    twists_of(b, Zh, 1, &D);
    twists_of(b, Sh, 1, &S);
    twists_of(b, w->Z0, n, Z0);
    twists_of(b, w->Z1, n, Z1);
    multi_dof_column(model, j, b, D, S, phi, column);
    for (int l = 0; l < n; ++l) {
        before[l] -= data->h * power(coadjoint(b, Z0[l]), S);
        after[l] -= data->h * power(coadjoint(b, Z1[l]), S);
    }
    solve_multi_dof(w, n, before, before);
    for (int l = 0; l < n; ++l) {
        right[v + l][0] += before[l] + inner(o[l].row, phi, 0);
        s->extra[v + l][0][0] += end[l];
        s->extra[v + l][1][0] += after[l] + inner(o[l].row1, phi, 0);
    }
}

/* The change by the step h, into lane 0. */
INTERNAL void begin_step(const struct tree_model *model, const struct tree_data *data, vn (*c)[9],
                         vn *right, unsigned char *state, const struct parameter_jumps *s)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        v4 phi[3], column[3], y[3] = {vec(0, 0, 0), vec(0, 0, 0), vec(0, 0, 0)};
        mark_jump(model, i, state, s);
        if (j->type < GENERATED) scalar_by_step(model, data, i, phi, column, right, s);
        else multi_dof_by_step(model, data, i, phi, column, right, s);
        add_to_lane(model, s->own[i], 0, 1.0, phi);
        if (j->parent < 0) continue;
        add_wrench_to_parent((data->bodies + i)->p, column, y, model->planar);
        add_to_lane(model, c[j->parent], 0, 1.0, y);
    }
}
