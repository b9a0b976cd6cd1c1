/* Y = r_z^{-1} W^T of the joints (T17, T19), for LANES rows of W at once: rows of constraints
 * (kkt.c), of contacts (contacts.c), or of springs and dampers (low_rank_update.c).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* The part of row `lane` of W in the rows of a joint, solved with its pivot, or zero; returns
 * whether it is not. */
static int load_rows(const struct tree_model *model, const struct tree_data *data,
                     const struct joint *j, const double *W, int count, vn *right)
{
    const int v = j->v_index, n = j->n_dof;
    int any = 0;
    for (int l = 0; l < n; ++l) {
        vn given = {0};
        for (int lane = 0; lane < count; ++lane) {
            given[lane] = W[(size_t)model->nv * lane + v + l];
            any |= given[lane] != 0.0;
        }
        right[v + l] = given;
    }
    if (!any) return 0;
    if (n > 1) {
        const struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
        solve_dense_columns(w->pivot, n, n, w->pivots, right + v);
    } else right[v] /= data->rows[v].pivot;
    return 1;
}

/* `count` columns of Y, LANES at most, by (T19) and (T17). Wrenches pass inward from joints with
 * entries of W only. */
INLINE void solve_rows_in(const struct tree_model *model, const struct tree_data *data,
                          const double *W, int count, enum row_reach reach, double *Y, int plane)
{
    vn(*c)[9] = (vn(*)[9])data->simd_columns, (*x)[9] = c + model->n_bodies,
    *right = (vn *)(x + model->n_bodies);
    unsigned char *moves = (unsigned char *)(right + model->n_rates);
    memset(moves, 0, model->n_bodies);
    for (int i = model->n_bodies - 1; i >= 0; --i) {
        const struct joint *j = model->joints + i;
        const struct newton_row *o = data->rows + j->v_index;
        if ((reach != ANY_JOINT && !j->constrained) || j->mode == IDLE) continue;
        const int loaded = j->mode == FREE && load_rows(model, data, j, W, count, right);
        if (!moves[i]) {
            if (!loaded) continue;
            memset(c[i], 0, sizeof c[i]);
        }
        if (j->mode == FREE) {
            vn by[MAX_DOF];
            for (int l = 0; l < j->n_dof; ++l)
                by[l] = right[j->v_index + l] += simd_dot(o[l].left, c[i], plane);
            for (int l = 0; l < j->n_dof; ++l) simd_add(-by[l], o[l].column, c[i], plane);
        }
        if (j->parent < 0) continue;
        if (!moves[j->parent]) memset(c[j->parent], 0, sizeof c[j->parent]);
        moves[j->parent] = 1;
        simd_inward(data->bodies[i].p, c[i], c[j->parent], plane);
    }
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const struct newton_row *o = data->rows + j->v_index;
        const int own = reach == ANY_JOINT || j->constrained,
                  carried = j->parent >= 0 && moves[j->parent];
        vn change[MAX_DOF];
        if (reach == CONSTRAINED_JOINTS && !own) continue;
        memset(change, 0, sizeof change);
        moves[i] = j->mode != IDLE && (carried || own);
        if (carried && moves[i]) simd_outward(data->bodies[i].p, x[j->parent], x[i], plane);
        else memset(x[i], 0, sizeof x[i]);
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
                       const double *W, int count, enum row_reach reach, double *Y)
{
    if (model->planar) solve_rows_in(model, data, W, count, reach, Y, 1);
    else solve_rows_in(model, data, W, count, reach, Y, 0);
}

/* Y = r_z^{-1} W^T of the joints alone, where W and Y reach. */
INTERNAL void solve_joint_rows(const struct tree_model *model, const struct tree_data *data,
                               const double *W, int rows, enum row_reach reach, double *Y)
{
    const size_t nv = model->nv;
    for (int r = 0; r < rows && !model->n_shared; r += LANES)
        solve_rows(model, data, W + nv * r, rows - r < LANES ? rows - r : LANES, reach,
                   Y + nv * r);
    for (int r = 0; r < rows && model->n_shared; ++r) {
        double *y = Y + nv * r;
        solve_joints(model, data, W + nv * r, y);
        for (int v = 0; v < model->n_free; ++v) y[v] = -y[v];
    }
}
