/* First derivatives of the step (T31, T32), LANES columns side by side: all have the factors of
 * Newton's equation, and only bodies between a column's own joint and the root pass wrenches
 * inward.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* The right-hand side of a column by its own joint, already solved with the pivot, and the
 * wrenches of its body (T31). */
static void begin(const struct tree_model *model, const struct tree_data *data, struct column s,
                  int lane, vn (*c)[9], vn *right)
{
    const struct joint *j = model->joints + s.body;
    const int n = j->n_dof, v = j->v_index, m = s.coordinate;
    const struct newton_row *o = data->rows + v;
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    double rows[MAX_DOF];
    for (int l = 0; l < n; ++l)
        rows[l] = s.kind == BY_RHO      ? l == m && v < model->nv
                  : s.kind == BY_SHARED ? j->ratio * o->pivot
                  : s.kind == BY_Q      ? (n > 1 ? w->source[n * l + m] : j->ratio * o->source)
                                        : 0.0;
    if (n > 1) solve_multi_dof(w, n, rows, rows);
    else if (j->mode == FREE) rows[0] /= o->pivot;
    for (int l = 0; l < n; ++l) right[v + l][lane] += rows[l];
    if (j->parent < 0 || s.kind == BY_RHO || j->mode == IDLE) return;
    const double by = is_prescribed(j) ? (s.kind == BY_Q ? -1 : 1) / data->h : s.kind == BY_SHARED;
    const struct body *b = data->bodies + s.body;
    v4 y[3];
    for (int i = 0; i < parts(model->planar); ++i)
        y[i] = (s.kind == BY_Q) * o[m].column_q[i] + by * o[m].column[i];
    wrench_to_parent(b->p, y, model->planar);
    add_to_lane(model, c[j->parent], lane, j->ratio, y);
}

/* The motion of its own joint, and changes of the rows of the state after the step (T31, T32). */
static void own_motion(const struct tree_model *model, const struct tree_data *data,
                       struct column s, int lane, vn *x, vn (*after)[2])
{
    const struct joint *j = model->joints + s.body;
    const int n = j->n_dof, v = j->v_index, m = s.coordinate;
    const struct newton_row *o = data->rows + v;
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    if (is_prescribed(j)) {
        const double by = (s.kind == BY_Q ? -1 : 1) / data->h;
        if (j->mode != IDLE) {
            add_to_lane(model, x, lane, j->ratio * (s.kind == BY_Q), o->phi_q);
            add_to_lane(model, x, lane, j->ratio * by, o->phi);
        }
        after[0][0][lane] = s.kind == BY_PRESCRIBED;
        after[0][1][lane] = by;
    } else if (s.kind == BY_Q) {
        add_to_lane(model, x, lane, j->ratio, o[m].phi_q);
        for (int l = 0; l < n; ++l) {
            after[l][0][lane] += n > 1 ? w->Eq[n * l + m] : v < model->nv;
            after[l][1][lane] += n > 1 ? w->source1[n * l + m] : j->ratio * o->source1;
        }
    } else if (s.kind == BY_SHARED) {
        add_to_lane(model, x, lane, j->ratio, o->phi);
        after[0][0][lane] += v < model->nv ? data->h : 0.0;
        after[0][1][lane] += j->ratio * o->slope1;
    }
}

/* `begin` for the joint of a column and for the mimic joints that follow it; the last of these
 * joints, whose states change. */
static int begin_all(const struct tree_model *model, const struct tree_data *data, struct column s,
                     int lane, vn (*c)[9], vn *right, unsigned char *state)
{
    int last = s.body;
    begin(model, data, s, lane, c, right);
    state[s.body] |= HAS_WRENCHES | MOVES | OF_JOINT;
    for (int i = 0; model->n_rates > model->nv && i < model->n_bodies; ++i) {
        if (i == s.body || model->joints[i].rate_index != model->joints[s.body].rate_index)
            continue;
        begin(model, data, (struct column){i, s.coordinate, s.kind, 0}, lane, c, right);
        state[i] |= HAS_WRENCHES | MOVES | OF_JOINT;
        if (i > last) last = i;
    }
    return last;
}

/* Right-hand sides -lam . D^2 h(q0) dq of changes of the start, with those of impulses, and of
 * multipliers, in the rows of joints on which constraints or contacts depend, solved with their
 * pivots. The last of these joints, -1 without any. */
static int by_constraints(const struct tree_model *model, const struct tree_data *data,
                          const struct column *s, int count, vn *right, unsigned char *state)
{
    vn *rows = data->constraint_columns;
    int some = 0, last = -1;
    for (int lane = 0; lane < count && n_multipliers(model); ++lane) {
        if (s[lane].kind != BY_Q && s[lane].kind != BY_MULTIPLIER) continue;
        if (!some++) memset(rows, 0, sizeof(vn) * model->nv);
        if (s[lane].kind == BY_MULTIPLIER) {
            const double *g = data->G0 + (size_t)model->nv * s[lane].coordinate;
            for (int v = 0; v < model->nv; ++v) rows[v][lane] = g[v];
            continue;
        }
        const int q = model->joints[s[lane].body].rate_index + s[lane].coordinate;
        for (int v = 0; v < model->nv && model->n_impulses; ++v)
            rows[v][lane] -= data->impulse_hessian[(size_t)model->nv * v + q];
        for (int v = 0; v < model->nv && model->n_wheel_rows; ++v)
            rows[v][lane] += data->wheel_hessian[(size_t)model->nv * v + q];
        for (int i = 0; i < model->n_bodies && n_closures(model); ++i)
            if (model->joints[i].rate_index == model->joints[s[lane].body].rate_index)
                constraint_hessian_row(model, data, i, s[lane].coordinate, (double *)rows + lane);
    }
    for (int i = 0; i < model->n_bodies && some; ++i) {
        const struct joint *j = model->joints + i;
        const int v = j->v_index, n = j->n_dof;
        if (!j->constrained || is_prescribed(j) || j->mode == MIMIC) continue;
        if (n > 1)
            solve_dense_columns(data->multi_dof[j->multi_dof_index].pivot, n, n,
                                data->multi_dof[j->multi_dof_index].pivots, rows + v);
        else if (j->mode == FREE) rows[v] /= data->rows[v].pivot;
        for (int l = 0; l < n; ++l) right[v + l] -= rows[v + l];
        state[i] |= HAS_WRENCHES | MOVES;
        last = i;
    }
    return last;
}

/* Columns `first`, first + 1, ... of `count` changes s, into the rows of AB and dz of length
 * stride: inward (T19), then outward (T17, T32). */
INLINE void columns_in(const struct tree_model *model, const struct tree_data *data,
                       const struct column *s, int count, int first, int stride, double *ab,
                       double *dz, int plane)
{
    vn(*c)[9] = (vn(*)[9])data->simd_columns, (*x)[9] = c + model->n_bodies,
    *right = (vn *)(x + model->n_bodies);
    const struct parameter_jumps jumps = jumps_at(model, right + model->n_rates);
    unsigned char *state = (unsigned char *)(jumps.weight + model->n_bodies);
    for (int i = 0; i < model->n_bodies; ++i)
        for (int k = 0; k < components(plane); ++k) c[i][k] = (vn){0};
    memset(right, 0, sizeof(vn) * model->n_rates);
    memset(state, 0, model->n_bodies);
    clear_shared_columns(model, data, count, first, stride, ab, dz);
    int last = 0;
    for (int l = 0; l < count; ++l) {
        if (s[l].kind >= BY_NUMBERS) {
            const int body = s[l].kind == BY_STEP
                                 ? model->n_bodies - 1
                                 : begin_parameter(model, data, s[l].derivatives, s[l].coordinate,
                                                   l, c, right, state, &jumps);
            if (s[l].kind == BY_STEP) begin_step(model, data, c, right, state, &jumps);
            if (body > last) last = body;
            continue;
        }
        if (s[l].kind != BY_MULTIPLIER) {
            const int own = begin_all(model, data, s[l], l, c, right, state);
            if (own > last) last = own;
        }
    }
    const int last_constrained = by_constraints(model, data, s, count, right, state);
    if (last_constrained > last) last = last_constrained;
    for (int i = last; i >= 0; --i) {
        if (state[i] & HAS_WEIGHT) pass_weight(model, data, i, c, right, state, &jumps);
        if (!(state[i] & HAS_WRENCHES) || model->joints[i].mode == IDLE) continue;
        const struct joint *j = model->joints + i;
        const int n = plane ? 1 : j->n_dof;
        const struct newton_row *o = data->rows + j->v_index;
        vn m[9];
        for (int k = 0; k < components(plane); ++k) m[k] = c[i][k];
        for (int l = 0; l < n && j->mode == FREE; ++l) {
            const vn by = right[j->v_index + l] += simd_dot(o[l].left, c[i], plane);
            simd_add(-by, o[l].column, m, plane);
        }
        if (j->parent >= 0) {
            simd_inward(data->bodies[i].p, m, c[j->parent], plane);
            state[j->parent] |= HAS_WRENCHES | MOVES;
        }
    }
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const int n = plane ? 1 : j->n_dof, v = j->v_index, lead = j->rate_index,
                  parent = j->parent;
        const struct newton_row *o = data->rows + v;
        const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
        vn after[MAX_DOF][2], change[MAX_DOF];
        for (int l = 0; l < n; ++l) after[l][0] = after[l][1] = change[l] = (vn){0};
        const int carried = parent >= 0 && state[parent] & MOVES && j->mode != IDLE;
        if (carried) state[i] |= MOVES;
        if (state[i] & MOVES) {
            if (carried) simd_outward(data->bodies[i].p, x[parent], x[i], plane);
            else memset(x[i], 0, sizeof x[i]);
            if (j->mode == FREE) {
                for (int l = 0; l < n; ++l)
                    change[l] = -(right[v + l] + simd_dot(o[l].row, x[i], plane));
                for (int l = 0; l < n; ++l) after[l][1] = simd_dot(o[l].row1, x[i], plane);
                for (int l = 0; l < n; ++l) {
                    if (state[i] & HAS_WRENCHES) after[l][1] += simd_dot(o[l].left1, c[i], plane);
                    for (int m = 0; m < n; ++m) {
                        after[l][0] += (n > 1 ? w->Ez[n * l + m] : data->h) * change[m];
                        after[l][1] += (n > 1 ? w->slope1[n * l + m] : o->slope1) * change[m];
                    }
                    simd_add(change[l], o[l].phi, x[i], plane);
                }
            }
            if (is_coupled(j)) {
                change[0] =
                    -(right[v] + simd_dot(o->left, c[i], plane) + simd_dot(o->row, x[i], plane));
                after[0][1] = simd_dot(o->left1, c[i], plane) + simd_dot(o->row1, x[i], plane);
            }
            if (state[i] & OF_NUMBERS) {
                for (int k = 0; k < components(plane); ++k) x[i][k] += jumps.own[i][k];
                for (int l = 0; l < n; ++l)
                    for (int k = 0; k < 2; ++k) after[l][k] += jumps.extra[v + l][k];
            }
            if (state[i] & OF_JOINT)
                for (int l = 0; l < count; ++l)
                    if (model->joints[s[l].body].rate_index == j->rate_index)
                        own_motion(model, data, (struct column){i, s[l].coordinate, s[l].kind, 0},
                                   l, x[i], after);
        }
        if (is_coupled(j)) {
            simd_add_to(ab + (size_t)stride * lead + first, count, after[0][0]);
            simd_add_to(ab + (size_t)stride * (model->nv + lead) + first, count,
                        j->ratio * after[0][1]);
            simd_add_to(dz + (size_t)stride * lead + first, count, j->ratio * change[0]);
            continue;
        }
        for (int l = 0; l < n && v < model->nv; ++l) {
            simd_store(ab + (size_t)stride * (v + l) + first, count, after[l][0]);
            simd_store(ab + (size_t)stride * (model->nv + v + l) + first, count, after[l][1]);
            if (j->mode == FREE)
                simd_store(dz + (size_t)stride * (v + l) + first, count, change[l]);
        }
    }
}

/* The same for trees in space and in a plane. */
INTERNAL void columns(const struct tree_model *model, const struct tree_data *data,
                      const struct column *s, int count, int first, int stride, double *ab,
                      double *dz)
{
    if (model->planar) columns_in(model, data, s, count, first, stride, ab, dz, 1);
    else columns_in(model, data, s, count, first, stride, ab, dz, 0);
}

/* Columns from..end - 1 of the variables (q, rho, forces, prescribed coordinates) but forces. */
INTERNAL void columns_by(const struct tree_model *model, const struct tree_data *data,
                         const int *body_of, int from, int end, int stride, double *ab, double *dz)
{
    const int nv = model->nv, prescribed = 2 * nv + model->n_forces - model->n_free;
    for (int first = from; first < end; first += LANES) {
        struct column s[LANES];
        const int count = end - first < LANES ? end - first : LANES;
        for (int l = 0; l < count; ++l) {
            const int at = first + l, kind = at < nv ? BY_Q : at < 2 * nv ? BY_RHO : BY_PRESCRIBED;
            const int v = kind == BY_PRESCRIBED ? at - prescribed : at % nv;
            s[l] = (struct column){body_of[v], v - model->joints[body_of[v]].v_index, kind, 0};
        }
        columns(model, data, s, count, first, stride, ab, dz);
    }
}

/* A force acts like alpha h of a momentum before the step, and (1 - alpha) h of one after it. */
INTERNAL void columns_by_forces(const struct tree_model *model, const struct tree_data *data,
                                int stride, double *ab, double *dz)
{
    const int nv = model->nv, nu = model->n_forces, *on = model->actuated_rates;
    const double before = model->start_fraction * data->h,
                 after = (1 - model->start_fraction) * data->h;
    for (int row = 0; row < 2 * nv + model->n_free; ++row) {
        double *all =
            row < 2 * nv ? ab + (size_t)stride * row : dz + (size_t)stride * (row - 2 * nv);
        for (int i = 0; i < nu; ++i) /* wrenches, which have no rate, follow */
            all[2 * nv + i] = before * all[nv + (on[i] < 0 ? 0 : on[i])];
    }
    for (int i = 0; i < nu; ++i)
        if (on[i] >= 0) ab[(size_t)stride * (nv + on[i]) + 2 * nv + i] += after;
}

/* A wrench acts on several coordinates (T25). */
INTERNAL void columns_by_wrenches(const struct tree_model *model, const struct tree_data *data,
                                  int stride, double *ab, double *dz)
{
    const int nv = model->nv;
    for (int i = 0; i < model->n_wrenches; ++i) {
        if (model->wrenches[i].input < 0) continue;
        const int at = 2 * nv + model->wrenches[i].input;
        double *f = data->wrench_force;
        memset(f, 0, sizeof(double) * nv);
        add_generalized_force(model, data, model->wrenches + i, 1.0, f);
        for (int row = 0; row < 2 * nv + model->n_free; ++row) {
            double *all = row < 2 * nv ? ab + (size_t)stride * row
                                       : dz + (size_t)stride * (row - 2 * nv),
                   total = 0.0;
            for (int v = 0; v < model->n_free; ++v) total += f[v] * all[nv + v];
            all[at] = model->start_fraction * data->h * total;
        }
        for (int v = 0; v < model->n_free; ++v)
            ab[(size_t)stride * (nv + v) + at] += (1 - model->start_fraction) * data->h * f[v];
    }
}
