/* Wrenches, springs, multipliers and coordinates that joints share, in the derivatives of
 * jacobian_columns.c; then the derivatives as they are asked for. */

/* Rows `at` of a matrix, `count` right-hand sides in every column, become their solutions. */
static void solve_columns(int count, const int *at, const double *factors, const int *order,
                          int nw, double *rows)
{
    for (int k = 0; k < nw; k += LANES) {
        const int lanes = nw - k < LANES ? nw - k : LANES;
        vn c[count];
        for (int r = 0; r < count; ++r) c[r] = lanes_of(rows + (size_t)nw * at[r] + k, lanes);
        lu_solve_lanes(factors, count, order, c);
        for (int r = 0; r < count; ++r) put(rows + (size_t)nw * at[r] + k, lanes, c[r]);
    }
}

/* y (n) += s_r x_r, a sum over `count` rows x. */
static void add_rows(int count, const double *s, const double *const *x, int n, double *y)
{
    int k = 0;
    for (; k + LANES <= n; k += LANES) {
        vn total = lanes_of(y + k, LANES);
        for (int r = 0; r < count; ++r) total += s[r] * lanes_of(x[r] + k, LANES);
        put(y + k, LANES, total);
    }
    for (; k < n; ++k)
        for (int r = 0; r < count; ++r) y[k] += s[r] * x[r][k];
}

/* `count` changes y of forces by n coordinates, F_z and F_q (count, n), the factors of their
 * equations, and what they do in the rows of these before and after the step, or where there are
 * none of these, each on its own coordinate. */
typedef struct {
    int count, n;
    const int *of, *order;
    const double *F_z, *F_q, *equations, *before, *after;
    double *y;
} Forces;

/* What the changes of forces add to columns, as if they were changes of the momenta. With C the
 * columns dz/drho, in ab_rho and dz_rho, times what the forces do there, and dz0 without them,
 *
 *     y = F_z dz + F_q dq,   dz = dz0 + C y,   (1 - F_z C) y = F_z dz0 + F_q dq,
 *
 * where y is F_q dq before. */
static void bend_columns(const Tree *t, const Forces *p, const double *ab_rho,
                         const double *dz_rho, int nw_rho, int nw, double *ab, double *dz)
{
    const int nv = t->nv, n = p->n, count = p->count;
    const double after = (1 - t->left) / t->left;
    int own[count];
    for (int a = 0; a < count; ++a) {
        own[a] = a;
        for (int b = 0; b < n; ++b)
            if (p->of[b] < t->nz && p->F_z[n * a + b] != 0.0)
                add_row(nw, p->F_z[n * a + b], dz + (size_t)nw * p->of[b], p->y + (size_t)nw * a);
    }
    solve_columns(count, own, p->equations, p->order, nw, p->y);
    for (int row = 0; row < 2 * nv + t->nz; ++row) {
        const double *rho = row < 2 * nv ? ab_rho + (size_t)nw_rho * row
                                         : dz_rho + (size_t)nw_rho * (row - 2 * nv);
        double *all = row < 2 * nv ? ab + (size_t)nw * row : dz + (size_t)nw * (row - 2 * nv),
               by[count];
        for (int a = 0; a < count; ++a) {
            by[a] = p->before ? 0.0 : rho[nv + p->of[a]];
            for (int b = 0; b < n && p->before; ++b)
                by[a] += p->before[n * a + b] * rho[nv + p->of[b]];
        }
        for (int a = 0; a < count; ++a) add_row(nw, by[a], p->y + (size_t)nw * a, all);
    }
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < n; ++b) {
            const double by = p->after ? p->after[n * a + b] : (a == b) * after;
            if (by != 0.0 && p->of[b] < t->nz)
                add_row(nw, by, p->y + (size_t)nw * a, ab + (size_t)nw * (nv + p->of[b]));
        }
}

/* The same in the columns by the multipliers, and in all. */
static void bend(const Tree *t, const Forces *p, int nw, double *ab, double *dz)
{
    memset(p->y, 0, sizeof(double) * p->count * t->m);
    bend_columns(t, p, ab, dz, nw, t->m, t->ab, t->by_lam);
    memset(p->y, 0, sizeof(double) * p->count * nw);
    for (int a = 0; a < p->count; ++a)
        for (int b = 0; b < p->n; ++b) {
            double *row = p->y + (size_t)nw * a;
            row[p->of[b]] = p->F_q[p->n * a + b];
            if (p->of[b] >= t->nz)
                row[2 * t->nv + t->nu + p->of[b] - t->nz] = p->F_z[p->n * a + b];
        }
    bend_columns(t, p, ab, dz, nw, nw, ab, dz);
}

/* Changes of the forces of springs, with the factors of Newton's equation. */
static void bend_by_springs(const Tree *t, int nw, double *ab, double *dz)
{
    int of[t->nv];
    for (int v = 0; v < t->nv; ++v) of[v] = v;
    const Forces p = {n_bonded(t, 1), t->nv,     of,        t->bonded_order, t->by_z,
                      t->by_q,        t->bonded, t->before, t->after,        t->changed};
    bend(t, &p, nw, ab, dz);
}

/* Places of the coordinates that carry a body, from `count` on; their number with it. */
static int number_carriers(const Tree *t, int body, int count, int *place, int *of)
{
    for (int b = body; b >= 0; b = (int)t->joints[b].parent)
        for (int l = 0, v = (int)t->joints[b].lead; l < (int)t->joints[b].size; ++l)
            if (place[v + l] < 0) of[count] = v + l, place[v + l] = count++;
    return count;
}

/* Changes of the n coordinates' f by wrenches and dampers. */
static int bend_pushes(const Tree *t, int n, int nw, double *ab, double *dz)
{
    const int nv = t->nv;
    int place[nv], of[n], order[n], count = 0;
    double *F_z = t->changed, *F_q = F_z + n * n, *equations = F_q + n * n;
    memset(place, -1, sizeof place);
    for (int i = 0; i < t->pushes; ++i)
        count = number_carriers(t, (int)t->push[i].body, count, place, of);
    for (int i = t->springs; i < t->springs + t->dampers; ++i)
        for (int end = 0; end < 2; ++end)
            count =
                number_carriers(t, (int)(end ? t->bonds[i].b : t->bonds[i].a), count, place, of);
    slopes_of_pushes(t, n, place, F_z, F_q);
    memset(equations, 0, sizeof(double) * n * n);
    for (int a = 0; a < n; ++a) {
        equations[n * a + a] = 1.0;
        if (of[a] >= t->nz) { /* the motion of a prescribed one does not change */
            memset(F_z + n * a, 0, sizeof(double) * n);
            memset(F_q + n * a, 0, sizeof(double) * n);
        }
        for (int b = 0; b < n; ++b)
            for (int c = 0; c < n && of[b] < t->nz; ++c)
                equations[n * a + c] -= F_z[n * a + b] * dz[(size_t)nw * of[b] + nv + of[c]];
    }
    if (lu_factor(equations, n, order)) return SINGULAR;
    const Forces p = {n, n, of, order, F_z, F_q, equations, 0, 0, equations + n * n};
    bend(t, &p, nw, ab, dz);
    return CONVERGED;
}

/* `count` more unknowns in the rows `at` of dz, where their right-hand sides are, by the factors
 * of their equations; and what they change in the other rows: by_ab, by_dz. */
static void complete(const Tree *t, int count, const int *at, const double *factors,
                     const int *order, const double *by_ab, const double *by_dz, int nw,
                     double *ab, double *dz)
{
    solve_columns(count, at, factors, order, nw, dz);
    const double *change[count];
    for (int r = 0; r < count; ++r) change[r] = dz + (size_t)nw * at[r];
    for (int row = 0; row < 2 * t->nv; ++row)
        add_rows(count, by_ab + (size_t)count * row, change, nw, ab + (size_t)nw * row);
    for (int row = 0; row < t->nz; ++row)
        add_rows(count, by_dz + (size_t)count * row, change, nw, dz + (size_t)nw * row);
}

/* Columns by the multipliers, into t->ab and t->by_lam. */
static void columns_by_multipliers(const Tree *t)
{
    const int m = t->m;
    for (int r = 0; r < m; r += LANES) {
        Source s[LANES];
        const int count = m - r < LANES ? m - r : LANES;
        for (int l = 0; l < count; ++l) s[l] = (Source){-1, r + l, BY_MULTIPLIER, 0};
        columns(t, s, count, r, m, t->ab, t->by_lam);
    }
}

/* Multipliers that keep Dh(q1) dq1 = 0 for every column, and what they change. */
static int constrain(const Tree *t, int nw, double *ab, double *dz)
{
    const int nv = t->nv, m = t->m;
    reach(t);
    slopes_at(t, t->end, t->G1);
    memset(t->schur, 0, sizeof(double) * m * m);
    memset(dz + (size_t)nw * t->nz, 0, sizeof(double) * nw * m);
    for (int r = 0; r < m; ++r)
        for (int v = 0; v < nv; ++v) {
            const double g = t->G1[(size_t)nv * r + v];
            if (g == 0.0) continue;
            add_row(m, g, t->ab + (size_t)m * v, t->schur + (size_t)m * r);
            add_row(nw, -g, ab + (size_t)nw * v, dz + (size_t)nw * (t->nz + r));
        }
    if (lu_factor(t->schur, m, t->order)) return SINGULAR;
    int at[m];
    for (int r = 0; r < m; ++r) at[r] = t->nz + r;
    complete(t, m, at, t->schur, t->order, t->ab, t->by_lam, nw, ab, dz);
    return CONVERGED;
}

/* Changes of the coordinates that joints share, for every column and those by the multipliers, and
 * what they change. */
static void share(const Tree *t, const int *body_of, int nw, double *ab, double *dz)
{
    const int n = t->leaders;
    for (int a = 0; a < n; ++a)
        columns(t, &(Source){body_of[t->lead[a]], 0, BY_SHARED, 0}, 1, a, n, t->ab_shared,
                t->by_shared);
    for (int a = 0; a < n; ++a) /* their own equations, known by the factors */
        memset(t->by_shared + (size_t)n * t->lead[a], 0, sizeof(double) * n);
    complete(t, n, t->lead, t->shared, t->shared_order, t->ab_shared, t->by_shared, nw, ab, dz);
    complete(t, n, t->lead, t->shared, t->shared_order, t->ab_shared, t->by_shared, t->m, t->ab,
             t->by_lam);
}

static int n_variables(const Tree *t) { return 3 * t->nv + t->nu - t->nz; }

/* By the parameters but h, into columns `first` ... */
static void columns_by_parameters(const Tree *t, const Slope *slope, int count, int first, int nw,
                                  double *ab, double *dz)
{
    for (int from = 0; from < count; from += LANES) {
        Source s[LANES];
        const int lanes = count - from < LANES ? count - from : LANES;
        for (int l = 0; l < lanes; ++l) {
            s[l] = (Source){-1, from + l, BY_NUMBERS, slope};
            while ((int)slope->parameter == from + l) ++slope;
        }
        columns(t, s, lanes, first + from, nw, ab, dz);
    }
}

static void bodies_of(const Tree *t, int *body_of)
{
    for (int i = 0; i < t->n; ++i)
        for (int l = 0; l < (int)t->joints[i].size; ++l) body_of[(int)t->joints[i].v + l] = i;
}

/* The derivatives where the last residual was taken, in rows of length nw, the last `n` columns by
 * parameters, at fixed multipliers. */
static int free_derivatives(const Tree *t, int nw, int carriers, int n, const Slope *slopes,
                            double *ab, double *dz)
{
    const int nv = t->nv;
    if (factor_slopes(t)) return SINGULAR;
    if (t->m) hold_all(t, t->q);
    int body_of[t->all];
    bodies_of(t, body_of);
    columns_by(t, body_of, 0, nv + t->nz, nw, ab, dz);
    for (int row = 0; row < 2 * nv; ++row)
        memset(ab + (size_t)nw * row + nv + t->nz, 0, sizeof(double) * (nv - t->nz));
    for (int row = 0; row < t->nz; ++row)
        memset(dz + (size_t)nw * row + nv + t->nz, 0, sizeof(double) * (nv - t->nz));
    columns_by_forces(t, nw, ab, dz);
    columns_by_pushes(t, nw, ab, dz);
    columns_by(t, body_of, 2 * nv + t->nu, 3 * nv + t->nu - t->nz, nw, ab, dz);
    if (n) {
        columns_by_parameters(t, slopes, n - 1, nw - n, nw, ab, dz);
        columns(t, &(Source){-1, 0, BY_STEP, 0}, 1, nw - 1, nw, ab, dz);
    }
    columns_by_multipliers(t);
    if (t->leaders) share(t, body_of, nw, ab, dz);
    if (t->springs) bend_by_springs(t, nw, ab, dz);
    return carriers ? bend_pushes(t, carriers, nw, ab, dz) : CONVERGED;
}

static int derivatives(const Tree *t, int nw, int carriers, int n, const Slope *slopes, double *ab,
                       double *dz)
{
    const int status = free_derivatives(t, nw, carriers, n, slopes, ab, dz);
    return status == CONVERGED && t->m ? constrain(t, nw, ab, dz) : status;
}

/* The derivatives where a step that failed took its last residual, in rows of length nw. */
int tree_derivatives(double *const *a, int nw)
{
    const Tree t = tree_at(a);
    return derivatives(&t, nw, (int)TREE_OF(a)->carriers, 0, 0, a[AB], a[DZ]);
}

/* r_z where the last residual was taken, with the inverse of the block without multipliers in its
 * place, into a[R_Z]; a[AB] and a[DZ], in rows of length nw, are overwritten. */
void tree_equations(double *const *a, int nw)
{
    const Tree t = tree_at(a);
    const int n = t.nz + t.m;
    double *r_z = a[R_Z];
    memset(r_z, 0, sizeof(double) * n * n);
    if (free_derivatives(&t, nw, (int)TREE_OF(a)->carriers, 0, 0, a[AB], a[DZ]) != CONVERGED)
        return;
    slopes_by_unknowns(&t);
    for (int i = 0; i < t.nz; ++i) {
        for (int v = 0; v < t.nz; ++v) r_z[(size_t)n * i + v] = -a[DZ][(size_t)nw * i + t.nv + v];
        for (int r = 0; r < t.m; ++r) {
            r_z[(size_t)n * i + t.nz + r] = -t.G0[(size_t)t.nv * r + i];
            r_z[(size_t)n * (t.nz + r) + i] = t.G1[(size_t)t.nv * r + i];
        }
    }
}

int nh_linearize(int (*step)(double *const *), double *const *a)
{
    const int status = step(a);
    if (status != CONVERGED) return status;
    const Tree t = tree_at(a);
    if (settled(&t, a[INFO])) residual(&t, a[Z], 0.0);
    return derivatives(&t, n_variables(&t), (int)TREE_OF(a)->carriers, 0, 0, a[AB], a[DZ]);
}

/* With the parameters among the variables. */
int tree_linearize_wide(int (*step)(double *const *), double *const *a)
{
    const int status = step(a), n = N_P;
    if (status != CONVERGED) return status;
    const Tree t = tree_at(a);
    if (settled(&t, a[INFO])) residual(&t, a[Z], 0.0);
    return derivatives(&t, n_variables(&t) + n, (int)TREE_OF(a)->carriers, n,
                       (const Slope *)a[SLOPES], a[AB], a[DZ]);
}
