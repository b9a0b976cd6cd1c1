/* Y = r_z^{-1} W^T of the joints (T17, T19), for LANES rows of W at once: rows of constraints
 * (kkt.c), or of springs and dampers (low_rank_update.c).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* The part of row `lane` of W in the rows of a joint, solved with its pivot. */
static void load_rows(const struct tree_model *model, const struct tree_data *data,
                      const struct joint *j, const double *W, int count, vn *right)
{
    const int v = j->v_index, n = j->n_dof;
    for (int l = 0; l < n; ++l) {
        vn given = {0};
        for (int lane = 0; lane < count; ++lane) given[lane] = W[(size_t)model->nv * lane + v + l];
        right[v + l] = given;
    }
    if (n > 1) {
        const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
        solve_dense_columns(w->pivot, n, n, w->pivots, right + v);
    } else right[v] /= data->rows[v].pivot;
}

/* `count` columns of Y, LANES at most, by (T19) and (T17). `constrained_only`: only joints on
 * which constraints depend have entries of W, so that only these pass wrenches inward. */
INLINE void solve_rows_in(const struct tree_model *model, const struct tree_data *data,
                          const double *W, int count, int constrained_only, double *Y, int plane)
{
    vn(*c)[9] = (vn(*)[9])data->simd_columns, (*x)[9] = c + model->n_bodies,
    *right = (vn *)(x + model->n_bodies);
    unsigned char *moves = (unsigned char *)(right + model->n_rates);
    memset(c, 0, sizeof *c * model->n_bodies);
    for (int i = model->n_bodies - 1; i >= 0; --i) {
        const struct joint *j = model->joints + i;
        const struct newton_row *o = data->rows + j->v_index;
        if ((constrained_only && !j->constrained) || j->mode == IDLE) continue;
        if (j->mode == FREE) {
            load_rows(model, data, j, W, count, right);
            vn by[MAX_DOF];
            for (int l = 0; l < j->n_dof; ++l)
                by[l] = right[j->v_index + l] += simd_dot(o[l].left, c[i], plane);
            for (int l = 0; l < j->n_dof; ++l) simd_add(-by[l], o[l].column, c[i], plane);
        }
        if (j->parent >= 0) simd_inward(data->bodies[i].p, c[i], c[j->parent], plane);
    }
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const struct newton_row *o = data->rows + j->v_index;
        const int carried = j->parent >= 0 && moves[j->parent],
                  own = !constrained_only || j->constrained;
        vn change[MAX_DOF];
        memset(change, 0, sizeof change);
        memset(x[i], 0, sizeof x[i]);
        moves[i] = j->mode != IDLE && (carried || own);
        if (carried && moves[i]) simd_outward(data->bodies[i].p, x[j->parent], x[i], plane);
        if (moves[i] && j->mode == FREE) {
            for (int l = 0; l < j->n_dof; ++l) {
                change[l] = -simd_dot(o[l].row, x[i], plane);
                if (own) change[l] -= right[j->v_index + l];
            }
            for (int l = 0; l < j->n_dof; ++l) simd_add(change[l], o[l].phi, x[i], plane);
        }
        for (int l = 0; l < j->n_dof && j->v_index < model->nv; ++l)
            for (int lane = 0; lane < count; ++lane)
                Y[(size_t)model->nv * lane + j->v_index + l] = -change[l][lane];
    }
}

/* The same for trees in space and in a plane. */
static void solve_rows(const struct tree_model *model, const struct tree_data *data,
                       const double *W, int count, int constrained_only, double *Y)
{
    if (model->planar) solve_rows_in(model, data, W, count, constrained_only, Y, 1);
    else solve_rows_in(model, data, W, count, constrained_only, Y, 0);
}

/* Y = r_z^{-1} W^T of the joints alone; `constrained_only`: W has entries of joints on which
 * constraints depend only. */
INTERNAL void solve_joint_rows(const struct tree_model *model, const struct tree_data *data,
                               const double *W, int rows, int constrained_only, double *Y)
{
    const size_t nv = model->nv;
    for (int r = 0; r < rows && !model->n_shared; r += LANES)
        solve_rows(model, data, W + nv * r, rows - r < LANES ? rows - r : LANES, constrained_only,
                   Y + nv * r);
    for (int r = 0; r < rows && model->n_shared; ++r) {
        double *y = Y + nv * r;
        solve_joints(model, data, W + nv * r, y);
        for (int v = 0; v < model->n_free; ++v) y[v] = -y[v];
    }
}
