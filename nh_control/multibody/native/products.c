/* Products of A and B, and of their transposes, with vectors, in time linear in the bodies: the
 * sweeps of the columns (jacobian_columns.c) with seeds of all joints, and their reverse (T43 to
 * T45). Trees without multipliers, wrenches, and springs and dampers between points.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* The factors for products, at the solution in a[Z] of the step from a[X]. */
int tree_factor_products(double *const *a)
{
    const struct tree tree = tree_at(a);
    residual(&tree.model, &tree.data, a[Z], 0.0);
    joint_endpoints(&tree.model, &tree.data);
    if (factor_joints(&tree.model, &tree.data, LINEARIZATION)) return SINGULAR;
    if (tree.model.n_shared) columns_by_shared(&tree.model, &tree.data);
    return CONVERGED;
}

/* Seeds of LANES vectors (T43): columns of (q, rho, forces, ends of prescribed coordinates). */
static void load_seeds(const struct tree_model *model, const struct tree_data *data,
                       const double *vectors, int stride, int count)
{
    const size_t row = stride, nv = model->nv;
    const double *forces = vectors + row * 2 * nv, *ends = forces + row * model->n_forces,
                 before = model->start_fraction * data->h;
    for (int v = 0; v < model->nv; ++v) {
        struct seed *s = data->seeds + v;
        s->q = simd_load(vectors + row * v, count);
        s->rho = simd_load(vectors + row * (nv + v), count);
        s->motion = (vn){0};
        if (v >= model->n_free) s->motion = simd_load(ends + row * (v - model->n_free), count);
    }
    for (int i = 0; i < model->n_forces; ++i)
        data->seeds[model->actuated_rates[i]].rho += before * simd_load(forces + row * i, count);
}

/* [A B] vectors (n_variables, count), into `products` (2 nv, count), and changes of the unknowns
 * into dz (n_free, count). */
void tree_products(double *const *a, int count, const double *vectors, double *products,
                   double *dz)
{
    const struct tree tree = tree_of(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    const size_t nv = model->nv;
    for (int first = 0; first < count; first += LANES) {
        const int lanes = count - first < LANES ? count - first : LANES;
        load_seeds(model, data, vectors + first, count, lanes);
        columns_by_seeds(model, data, lanes, first, count, products, dz);
    }
    if (model->n_shared) eliminate_shared(model, data, count, products, dz);
    for (int i = 0; i < model->n_forces; ++i)
        add_scaled(count, (1 - model->start_fraction) * data->h, vectors + (2 * nv + i) * count,
                   products + (nv + model->actuated_rates[i]) * count);
}

/* Weights of the rows of shared coordinates (T45), into the motions of their seeds. */
static void weigh_shared_rows(const struct tree_model *model, const struct tree_data *data,
                              const double *weights, int stride, int count)
{
    const int n = model->n_shared;
    vn *all = data->solved_columns;
    for (int a = 0; a < n; ++a) all[a] = (vn){0};
    for (int row = 0; row < 2 * model->nv; ++row) {
        const vn weight = simd_load(weights + (size_t)stride * row, count);
        for (int a = 0; a < n; ++a) all[a] += data->ab_by_shared[(size_t)n * row + a] * weight;
    }
    solve_transposed_columns(data->shared_matrix, n, data->shared_pivots, all);
    for (int a = 0; a < n; ++a) data->seeds[data->shared_rates[a]].motion = all[a];
}

/* Of a joint in the reverse of the sweep outward (T44): x, weights of the motion of its body,
 * become those of the motion before its own change; weights c of the wrenches, `right` of its
 * right-hand sides, and what it adds to the weights of its seed. */
INLINE void reverse_outward(const struct tree_model *model, const struct tree_data *data,
                            const struct joint *j, const vn *q1, const vn *rho1, vn *x, vn *c,
                            vn *right, int plane)
{
    const int n = plane ? 1 : j->n_dof, own = j->v_index < model->nv;
    const struct newton_row *o = data->rows + j->v_index;
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    struct seed *s = data->seeds + j->rate_index;
    for (int k = 0; k < components(plane); ++k) c[k] = (vn){0};
    if (is_prescribed(j)) {
        if (own) s->motion += rho1[0];
        if (j->mode == IDLE) return;
        s->motion += j->ratio * simd_dot(o->phi, x, plane);
        s->q += j->ratio * simd_dot(o->phi_q, x, plane);
        return;
    }
    for (int l = 0; l < n; ++l) {
        s[l].q += j->ratio * simd_dot(o[l].phi_q, x, plane);
        if (j->mode == FREE) right[l] = -simd_dot(o[l].phi, x, plane);
        else right[l] = -j->ratio * s->motion; /* of the row of the shared coordinate */
    }
    if (n == 1) {
        s->q += j->ratio * j->ratio * o->source1 * rho1[0];
        if (own) s->q += q1[0];
        if (j->mode == FREE) right[0] -= data->h * q1[0] + o->slope1 * rho1[0];
    } else
        for (int l = 0; l < n; ++l)
            for (int m = 0; m < n; ++m) {
                s[m].q += w->Eq[n * l + m] * q1[l] + w->source1[n * l + m] * rho1[l];
                right[m] -= w->Ez[n * l + m] * q1[l] + w->slope1[n * l + m] * rho1[l];
            }
    for (int l = 0; l < n; ++l) {
        simd_add(j->ratio * rho1[l], o[l].left1, c, plane);
        simd_add(j->ratio * rho1[l], o[l].row1, x, plane);
        simd_add(right[l], o[l].row, x, plane);
        if (is_coupled(j)) simd_add(right[l], o[l].left, c, plane);
    }
}

/* Of a joint in the reverse of the sweep inward (T44): m, weights of the wrenches that it passes
 * to its parent, are added to those c of its body's own. */
INLINE void reverse_inward(const struct tree_model *model, const struct tree_data *data,
                           const struct joint *j, const vn *m, vn *c, vn *right, int plane)
{
    const int n = plane ? 1 : j->n_dof;
    const struct newton_row *o = data->rows + j->v_index;
    const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
    struct seed *s = data->seeds + j->rate_index;
    for (int k = 0; k < components(plane); ++k) c[k] += m[k];
    for (int l = 0; l < n; ++l) s[l].q += j->ratio * simd_dot(o[l].column_q, m, plane);
    if (is_prescribed(j)) {
        s->motion += j->ratio * simd_dot(o->column, m, plane);
        return;
    }
    for (int l = 0; l < n && j->mode == FREE; ++l) right[l] -= simd_dot(o[l].column, m, plane);
    for (int l = 0; l < n && j->mode == FREE; ++l) simd_add(right[l], o[l].left, c, plane);
    if (n > 1) solve_transposed_columns(w->pivot, n, w->pivots, right);
    else if (j->mode == FREE) right[0] /= o->pivot;
    for (int l = 0; l < n && j->v_index < model->nv; ++l) s[l].rho = right[l];
    if (n == 1) s->q += j->ratio * o->source * right[0];
    else
        for (int l = 0; l < n; ++l)
            for (int k = 0; k < n; ++k) s[k].q += w->source[n * l + k] * right[l];
}

/* Weights of the seeds, by those of the rows of LANES columns: the sweeps of columns in reverse
 * (T44). */
INLINE void reverse_sweeps(const struct tree_model *model, const struct tree_data *data,
                           const double *weights, int stride, int count, int plane)
{
    vn(*c)[9] = (vn(*)[9])data->simd_columns, (*x)[9] = c + model->n_bodies,
    *right = (vn *)(x + model->n_bodies);
    memset(data->seeds, 0, sizeof *data->seeds * model->nv);
    if (model->n_shared) weigh_shared_rows(model, data, weights, stride, count);
    for (int i = 0; i < model->n_bodies; ++i)
        for (int k = 0; k < components(plane); ++k) x[i][k] = (vn){0};
    for (int i = model->n_bodies - 1; i >= 0; --i) {
        const struct joint *j = model->joints + i;
        const double *row = weights + (size_t)stride * j->rate_index,
                     *after = row + (size_t)stride * model->nv;
        vn q1[MAX_DOF], rho1[MAX_DOF];
        for (int l = 0; l < (plane ? 1 : j->n_dof); ++l) {
            q1[l] = simd_load(row + (size_t)stride * l, count);
            rho1[l] = simd_load(after + (size_t)stride * l, count);
        }
        reverse_outward(model, data, j, q1, rho1, x[i], c[i], right + j->v_index, plane);
        if (j->parent >= 0 && j->mode != IDLE)
            simd_inward(data->bodies[i].p, x[i], x[j->parent], plane);
    }
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        vn m[9] = {{0}};
        if (j->mode == IDLE) continue;
        if (j->parent >= 0) simd_outward(data->bodies[i].p, c[j->parent], m, plane);
        reverse_inward(model, data, j, m, c[i], right + j->v_index, plane);
    }
}

/* Weights of LANES columns of the variables by those of their seeds: the transpose of load_seeds,
 * with the part of the ends and forces in the rows after the step. */
static void store_seeds(const struct tree_model *model, const struct tree_data *data,
                        const double *weights, int stride, int count, double *products)
{
    const size_t row = stride, nv = model->nv;
    double *forces = products + row * 2 * nv, *ends = forces + row * model->n_forces;
    const double before = model->start_fraction * data->h,
                 after = (1 - model->start_fraction) * data->h;
    for (int v = 0; v < model->nv; ++v) {
        const struct seed *s = data->seeds + v;
        vn q = s->q;
        if (v >= model->n_free) {
            const vn by_end = s->motion / data->h;
            q -= by_end;
            simd_store(ends + row * (v - model->n_free), count,
                       simd_load(weights + row * v, count) + by_end);
        }
        simd_store(products + row * v, count, q);
        simd_store(products + row * (nv + v), count, s->rho);
    }
    for (int i = 0; i < model->n_forces; ++i) {
        const int v = model->actuated_rates[i];
        simd_store(forces + row * i, count,
                   before * data->seeds[v].rho +
                       after * simd_load(weights + row * (nv + v), count));
    }
}

/* [A B]^T weights (2 nv, count), into `products` (n_variables, count). */
void tree_transposed_products(double *const *a, int count, const double *weights, double *products)
{
    const struct tree tree = tree_of(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    for (int first = 0; first < count; first += LANES) {
        const int lanes = count - first < LANES ? count - first : LANES;
        if (model->planar) reverse_sweeps(model, data, weights + first, count, lanes, 1);
        else reverse_sweeps(model, data, weights + first, count, lanes, 0);
        store_seeds(model, data, weights + first, count, lanes, products + first);
    }
}
