/* Newton's equation of the tree and its constraints together: the tree's factors, and a dense
 * system of the multipliers behind them. */

/* Once a step: Dh(q0), and the sizes of its terms and of those of h. */
static void start_constraints(const Tree *t)
{
    if (!t->m) return;
    slopes_at(t, t->q, t->G0);
    memset(t->replies, 0, sizeof(double) * t->m * t->m);
    for (int r = 0; r < t->m; ++r) {
        t->begun[r] = t->holds[r].size;
        slope_sizes(t, t->constraints + r, t->holds + r, t->sizes + (size_t)t->nv * r);
    }
}

/* The residual with the multipliers behind z. What adds up to h(q1) is what adds up to h(q0), the
 * step, which is no larger than both ends, and what the multipliers change: what they keep from
 * moving may be where all else is zero. */
static void whole_residual(const Tree *t, const double *z, double turns)
{
    residual(t, z, turns);
    if (!t->m) return;
    const double *lam = z + t->nz;
    memcpy(t->at, z, sizeof(double) * (t->nz + t->m));
    reach(t);
    hold_all(t, t->end);
    for (int r = 0; r < t->m; ++r) {
        const double *g = t->G0 + (size_t)t->nv * r, *sizes = t->sizes + (size_t)t->nv * r,
                     *replies = t->replies + (size_t)t->m * r;
        t->r[t->nz + r] = t->holds[r].value;
        for (int v = 0; v < t->nz; ++v) t->r[v] -= g[v] * lam[r];
        if (!(turns > 0.0)) continue;
        double *size = t->size + t->nz + r;
        *size = turns * (t->begun[r] + t->holds[r].size);
        for (int s = 0; s < t->m; ++s) *size += replies[s] * fabs(lam[s]);
        for (int v = 0; v < t->nz; ++v) t->size[v] += sizes[v] * fabs(lam[r]);
    }
}

/* Dh(q1) q1_z (m, nv) where the last residual was taken; the columns of prescribed coordinates are
 * Dh(q1). */
static void slopes_by_unknowns(const Tree *t)
{
    slopes_at(t, t->end, t->G1);
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        const int n = (int)j->size;
        if (j->prescribed > 0 || j->prescribed == FOLLOWS || !j->held_by) continue;
        for (int r = 0; r < t->m; ++r) {
            double *g = t->G1 + (size_t)t->nv * r + (int)j->v, by[MOST] = {0};
            for (int l = 0; l < n; ++l)
                for (int k = 0; k < n; ++k)
                    by[k] += g[l] * (n > 1 ? t->nodes[(int)j->wide].Ez[n * l + k] : t->h);
            memcpy(g, by, sizeof(double) * n);
        }
    }
}

/* What row `lane` of W gives the rows of a joint, solved with its pivot. */
static void load_rows(const Tree *t, const Joint *j, const double *W, int count, vn *right)
{
    const int v = (int)j->v, n = (int)j->size;
    memset(right + v, 0, sizeof(vn) * n);
    for (int lane = 0; lane < count; ++lane) {
        double given[MOST];
        memcpy(given, W + (size_t)t->nv * lane + v, sizeof(double) * n);
        if (n > 1) solve_wide(t->wides + (int)j->wide, n, given, given);
        else given[0] /= t->rows[v].pivot;
        for (int l = 0; l < n; ++l) right[v + l][lane] = given[l];
    }
}

/* `count` columns of Y, LANES at most: only bodies that are `held`, if all those with rows are,
 * pass wrenches inward, and those that these carry move. */
INLINE void solve_rows_in(const Tree *t, const double *W, int count, int held, double *Y,
                          int plane)
{
    vn(*c)[9] = (vn(*)[9])t->lanes, (*x)[9] = c + t->n, *right = (vn *)(x + t->n);
    unsigned char *moves = (unsigned char *)(right + t->all);
    memset(c, 0, sizeof *c * t->n);
    for (int i = t->n - 1; i >= 0; --i) {
        const Joint *j = t->joints + i;
        const Row *o = t->rows + (int)j->v;
        if ((held && !j->held_by) || j->prescribed == IDLE) continue;
        if (!j->prescribed) {
            load_rows(t, j, W, count, right);
            vn by[MOST];
            for (int l = 0; l < (int)j->size; ++l)
                by[l] = right[(int)j->v + l] += dot_lanes(o[l].left, c[i], plane);
            for (int l = 0; l < (int)j->size; ++l) add_lanes(-by[l], o[l].column, c[i], plane);
        }
        if (j->parent >= 0) lanes_in(t->bodies + i, c[i], c[(int)j->parent], plane);
    }
    for (int i = 0; i < t->n; ++i) {
        const Joint *j = t->joints + i;
        const Row *o = t->rows + (int)j->v;
        const int carried = j->parent >= 0 && moves[(int)j->parent],
                  own = !held || j->held_by != 0.0;
        vn change[MOST];
        memset(change, 0, sizeof change);
        memset(x[i], 0, sizeof x[i]);
        moves[i] = j->prescribed != IDLE && (carried || own);
        if (carried && moves[i]) lanes_out(t->bodies + i, x[(int)j->parent], x[i], plane);
        if (moves[i] && !j->prescribed) {
            for (int l = 0; l < (int)j->size; ++l) {
                change[l] = -dot_lanes(o[l].row, x[i], plane);
                if (own) change[l] -= right[(int)j->v + l];
            }
            for (int l = 0; l < (int)j->size; ++l) add_lanes(change[l], o[l].phi, x[i], plane);
        }
        for (int l = 0; l < (int)j->size && (int)j->v < t->nv; ++l)
            for (int lane = 0; lane < count; ++lane)
                Y[(size_t)t->nv * lane + (int)j->v + l] = -change[l][lane];
    }
}

static void solve_rows(const Tree *t, const double *W, int count, int held, double *Y)
{
    if (t->plane) solve_rows_in(t, W, count, held, Y, 1);
    else solve_rows_in(t, W, count, held, Y, 0);
}

/* Y = r_z^{-1} W^T of the joints alone; `held`: W has something for those that constraints hold
 * only. */
static void solve_joint_rows(const Tree *t, const double *W, int rows, int held, double *Y)
{
    const size_t nv = t->nv;
    for (int r = 0; r < rows && !t->leaders; r += LANES)
        solve_rows(t, W + nv * r, rows - r < LANES ? rows - r : LANES, held, Y + nv * r);
    for (int r = 0; r < rows && t->leaders; ++r) {
        double *y = Y + nv * r;
        solve_joints(t, W + nv * r, y);
        for (int v = 0; v < t->nz; ++v) y[v] = -y[v];
    }
}

/* Y = r_z^{-1} Dh(q0)^T. */
static void solve_all_rows(const Tree *t)
{
    solve_joint_rows(t, t->G0, t->m, 1, t->Y);
    for (int r = 0; r < t->m; ++r) couple(t, t->Y + (size_t)t->nv * r);
}

/* Factors of the tree's r_z, or of its mass matrix, Y and those of the small matrix. */
static int whole_factor(const Tree *t, int mass)
{
    if (mass ? factor_mass(t) : factor(t)) return 1;
    if (!t->m) return 0;
    slopes_by_unknowns(t);
    solve_all_rows(t);
    for (int r = 0; r < t->m; ++r)
        for (int s = 0; s < t->m; ++s)
            t->schur[(size_t)t->m * r + s] =
                product(t->nz, t->G1 + (size_t)t->nv * r, t->Y + (size_t)t->nv * s);
    for (int i = 0; i < t->m * t->m; ++i) t->replies[i] = fabs(t->schur[i]);
    return lu_factor(t->schur, t->m, t->order);
}

/* dz = -r_z^{-1} r. */
static void whole_solve(const Tree *t, const double *r, double *dz)
{
    solve(t, r, dz);
    if (!t->m) return;
    double *lam = dz + t->nz, right[t->m];
    for (int i = 0; i < t->m; ++i)
        right[i] = -r[t->nz + i] - product(t->nz, t->G1 + (size_t)t->nv * i, dz);
    lu_solve(t->schur, t->m, t->order, right, lam);
    for (int i = 0; i < t->m; ++i)
        for (int v = 0; v < t->nz; ++v) dz[v] += t->Y[(size_t)t->nv * i + v] * lam[i];
}

/* The velocity z becomes the one that keeps Dh(q0) v = 0, by impulses Dh^T mu, with the factors of
 * the mass matrix. */
static int hold_velocity(const Tree *t, double *z)
{
    double right[t->m];
    solve_all_rows(t);
    for (int r = 0; r < t->m; ++r) {
        const double *g = t->G0 + (size_t)t->nv * r;
        right[r] = 0.0;
        for (int i = 0; i < t->n; ++i) {
            const Joint *j = t->joints + i;
            for (int v = (int)j->v; v < (int)j->v + (int)j->size && v < t->nv; ++v)
                right[r] -= g[v] * (j->prescribed > 0 ? t->bodies[i].rate : z[v]);
        }
        for (int s = 0; s < t->m; ++s)
            t->schur[(size_t)t->m * r + s] = product(t->nz, g, t->Y + (size_t)t->nv * s);
    }
    if (lu_factor(t->schur, t->m, t->order)) return SINGULAR;
    lu_solve(t->schur, t->m, t->order, right, right);
    for (int r = 0; r < t->m; ++r)
        for (int v = 0; v < t->nz; ++v) z[v] += t->Y[(size_t)t->nv * r + v] * right[r];
    return CONVERGED;
}
