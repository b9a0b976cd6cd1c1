/* First derivatives of the step (T31, T32), LANES columns side by side: all have the factors of
 * Newton's equation, and only bodies between a column's own joint and the root pass wrenches
 * inward.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* Seeds of unit columns, and the states of the bodies of their joints, which are those that follow
 * a coordinate; the last of these bodies, whose states change. */
static int seed_units(const struct tree_model *model, const struct tree_data *data,
                      const struct column *s, int count, unsigned char *state)
{
    int last = 0;
    for (int lane = 0; lane < count; ++lane) {
        if (s[lane].kind >= BY_MULTIPLIER) continue;
        const struct joint *j = model->joints + s[lane].body;
        memset(data->seeds + j->rate_index, 0, sizeof *data->seeds * j->n_dof);
    }
    for (int lane = 0; lane < count; ++lane) {
        const int body = s[lane].body, kind = s[lane].kind;
        if (kind >= BY_MULTIPLIER) continue;
        struct seed *seed = data->seeds + model->joints[body].rate_index + s[lane].coordinate;
        (kind == BY_Q     ? &seed->q
         : kind == BY_RHO ? &seed->rho
                          : &seed->motion)[0][lane] = 1.0;
        const unsigned char all =
            LOADED | MOVES | SEEDED | (kind == BY_RHO ? 0 : OF_JOINT);
        state[body] |= all;
        if (body > last) last = body;
        for (int i = 0; model->n_rates > model->nv && i < model->n_bodies; ++i) {
            if (model->joints[i].rate_index != model->joints[body].rate_index) continue;
            state[i] |= all;
            if (i > last) last = i;
        }
    }
    return last;
}

/* The change of the rate of a joint whose coordinate is prescribed or shared, by its seed. */
INLINE vn rate_of_seed(const struct tree_data *data, const struct joint *j, const struct seed *s)
{
    if (is_prescribed(j)) return (s->motion - s->q) / data->h;
    return s->motion;
}

/* Adds the right-hand sides of a joint by its seed (T31), solved with its pivot. */
INLINE void add_right(const struct tree_model *model, const struct tree_data *data,
                      const struct joint *j, vn *right, int plane)
{
    const int n = plane ? 1 : j->n_dof, v = j->v_index;
    const struct seed *s = data->seeds + j->rate_index;
    const struct newton_row *o = data->rows + v;
    if (is_prescribed(j)) return;
    if (n == 1) {
        vn row = j->ratio * o->source * s->q;
        if (v < model->nv) row += s->rho;
        if (is_coupled(j)) row += j->ratio * o->pivot * s->motion;
        if (j->mode == FREE) row /= o->pivot;
        right[v] += row;
        return;
    }
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    vn rows[MAX_DOF];
    for (int l = 0; l < n; ++l) {
        rows[l] = s[l].rho;
        for (int m = 0; m < n; ++m) rows[l] += w->source[n * l + m] * s[m].q;
    }
    solve_dense_columns(w->pivot, n, n, w->pivots, rows);
    for (int l = 0; l < n; ++l) right[v + l] += rows[l];
}

/* Adds the wrenches y that a joint passes inward by its seed (T31). */
INLINE void add_wrenches(const struct tree_data *data, const struct joint *j, vn *y, int plane)
{
    const int n = plane ? 1 : j->n_dof;
    const struct seed *s = data->seeds + j->rate_index;
    const struct newton_row *o = data->rows + j->v_index;
    for (int l = 0; l < n; ++l) simd_add(j->ratio * s[l].q, o[l].column_q, y, plane);
    if (j->mode != FREE) simd_add(j->ratio * rate_of_seed(data, j, s), o->column, y, plane);
}

/* Adds the motion x of a joint by its seed, and changes of its rows of the state after the step
 * (T31, T32). */
INLINE void add_motion(const struct tree_data *data, const struct joint *j, vn *x, vn (*after)[2],
                       int plane)
{
    const int n = plane ? 1 : j->n_dof;
    const struct seed *s = data->seeds + j->rate_index;
    const struct newton_row *o = data->rows + j->v_index;
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    const vn rate = rate_of_seed(data, j, s);
    if (j->mode != IDLE)
        for (int l = 0; l < n; ++l) simd_add(j->ratio * s[l].q, o[l].phi_q, x, plane);
    if (j->mode != IDLE && j->mode != FREE) simd_add(j->ratio * rate, o->phi, x, plane);
    if (is_prescribed(j)) {
        after[0][0] = s->motion;
        after[0][1] = rate;
    } else if (n == 1) {
        after[0][0] += s->q;
        after[0][1] += j->ratio * o->source1 * s->q;
        if (j->mode == FREE) return;
        after[0][0] += data->h * rate;
        after[0][1] += j->ratio * o->slope1 * rate;
    } else
        for (int l = 0; l < n; ++l)
            for (int m = 0; m < n; ++m) {
                after[l][0] += w->Eq[n * l + m] * s[m].q;
                after[l][1] += w->source1[n * l + m] * s[m].q;
            }
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
        state[i] |= LOADED | MOVES;
        last = i;
    }
    return last;
}

/* The rooms of LANES columns. */
struct lanes {
    vn (*c)[9], (*x)[9], *right; /* wrenches, motions, right-hand sides */
    struct parameter_jumps jumps;
    unsigned char *state; /* of the bodies: enum column_state */
};

INLINE struct lanes lanes_of(const struct tree_model *model, const struct tree_data *data)
{
    struct lanes all = {.c = (vn(*)[9])data->simd_columns};
    all.x = all.c + model->n_bodies;
    all.right = (vn *)(all.x + model->n_bodies);
    all.jumps = jumps_at(model, all.right + model->n_rates);
    all.state = (unsigned char *)(all.jumps.weight + model->n_bodies);
    return all;
}

/* No wrenches; a number of components that is not constant would make a call for each body. */
INLINE void clear_wrenches(const struct tree_model *model, const struct lanes *all, int plane)
{
    for (int i = 0; i < model->n_bodies; ++i)
        for (int k = 0; k < components(plane); ++k) all->c[i][k] = (vn){0};
}

/* No wrenches and no right-hand sides yet; all bodies in the same state. */
static void clear_lanes(const struct tree_model *model, const struct lanes *all,
                        unsigned char state)
{
    if (model->planar) clear_wrenches(model, all, 1);
    else clear_wrenches(model, all, 0);
    memset(all->right, 0, sizeof(vn) * model->n_rates);
    memset(all->state, state, model->n_bodies);
}

/* Columns `first`, first + 1, ... of `count` changes, whose seeds, right-hand sides and states of
 * bodies are there, into the rows of AB and dz of length stride: inward from the body `last`
 * (T19), then outward (T17, T32). */
INLINE void column_sweeps(const struct tree_model *model, const struct tree_data *data,
                          const struct lanes *all, int last, int count, int first, int stride,
                          double *ab, double *dz, int plane)
{
    vn(*c)[9] = all->c, (*x)[9] = all->x, *right = all->right;
    unsigned char *state = all->state;
    clear_shared_columns(model, data, count, first, stride, ab, dz);
    for (int i = last; i >= 0; --i) {
        if (state[i] & HAS_WEIGHT) pass_weight(model, data, i, c, right, state, &all->jumps);
        if (!(state[i] & (HAS_WRENCHES | LOADED)) || model->joints[i].mode == IDLE) continue;
        const struct joint *j = model->joints + i;
        const int n = j->mode != FREE ? 0 : plane ? 1 : j->n_dof;
        const struct newton_row *o = data->rows + j->v_index;
        vn m[9], *by = right + j->v_index;
        if (state[i] & SEEDED) add_right(model, data, j, right, plane);
        for (int l = 0; l < n && state[i] & HAS_WRENCHES; ++l)
            by[l] += simd_inner(o[l].left, c[i], plane);
        if (j->parent < 0) continue;
        for (int k = 0; k < components(plane); ++k) m[k] = c[i][k];
        for (int l = 0; l < n; ++l) simd_add(-by[l], o[l].column, m, plane);
        if (state[i] & OF_JOINT) add_wrenches(data, j, m, plane);
        simd_inward(data->bodies[i].p, m, c[j->parent], plane);
        state[j->parent] |= HAS_WRENCHES | MOVES;
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
                for (int l = 0; l < n; ++l) change[l] = -right[v + l];
                for (int l = 0; l < n && carried; ++l) {
                    change[l] -= simd_inner(o[l].row, x[i], plane);
                    after[l][1] = simd_inner(o[l].row1, x[i], plane);
                }
                for (int l = 0; l < n && state[i] & HAS_WRENCHES; ++l)
                    after[l][1] += simd_inner(o[l].left1, c[i], plane);
                for (int l = 0; l < n; ++l) {
                    for (int m = 0; m < n; ++m) {
                        after[l][0] += (n > 1 ? w->Ez[n * l + m] : data->h) * change[m];
                        after[l][1] += (n > 1 ? w->slope1[n * l + m] : o->slope1) * change[m];
                    }
                    simd_add(change[l], o[l].phi, x[i], plane);
                }
            }
            if (is_coupled(j)) {
                change[0] = -(right[v] + simd_inner(o->left, c[i], plane) +
                              simd_inner(o->row, x[i], plane));
                after[0][1] = simd_inner(o->left1, c[i], plane) + simd_inner(o->row1, x[i], plane);
            }
            if (state[i] & OF_NUMBERS) {
                for (int k = 0; k < components(plane); ++k) x[i][k] += all->jumps.own[i][k];
                for (int l = 0; l < n; ++l)
                    for (int k = 0; k < 2; ++k) after[l][k] += all->jumps.extra[v + l][k];
            }
            if (state[i] & OF_JOINT) add_motion(data, j, x[i], after, plane);
        }
        if (is_coupled(j)) {
            if (v < model->nv) simd_add_to(ab + (size_t)stride * lead + first, count, after[0][0]);
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
static void sweep_lanes(const struct tree_model *model, const struct tree_data *data,
                        const struct lanes *all, int last, int count, int first, int stride,
                        double *ab, double *dz)
{
    if (model->planar) column_sweeps(model, data, all, last, count, first, stride, ab, dz, 1);
    else column_sweeps(model, data, all, last, count, first, stride, ab, dz, 0);
}

/* Columns `first`, first + 1, ... of `count` changes s, LANES at most. */
INTERNAL void columns(const struct tree_model *model, const struct tree_data *data,
                      const struct column *s, int count, int first, int stride, double *ab,
                      double *dz)
{
    const struct lanes all = lanes_of(model, data);
    clear_lanes(model, &all, 0);
    int last = seed_units(model, data, s, count, all.state);
    for (int l = 0; l < count; ++l) {
        if (s[l].kind < BY_NUMBERS) continue;
        const int body = s[l].kind == BY_STEP
                             ? model->n_bodies - 1
                             : begin_parameter(model, data, s[l].derivatives, s[l].coordinate, l,
                                               all.c, all.right, all.state, &all.jumps);
        if (s[l].kind == BY_STEP)
            begin_step(model, data, all.c, all.right, all.state, &all.jumps);
        if (body > last) last = body;
    }
    const int last_constrained = by_constraints(model, data, s, count, all.right, all.state);
    if (last_constrained > last) last = last_constrained;
    sweep_lanes(model, data, &all, last, count, first, stride, ab, dz);
}

/* The same of LANES changes of all variables, whose seeds are in data->seeds. */
INTERNAL void columns_by_seeds(const struct tree_model *model, const struct tree_data *data,
                               int count, int first, int stride, double *ab, double *dz)
{
    const struct lanes all = lanes_of(model, data);
    clear_lanes(model, &all, LOADED | MOVES | OF_JOINT | SEEDED);
    sweep_lanes(model, data, &all, model->n_bodies - 1, count, first, stride, ab, dz);
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
