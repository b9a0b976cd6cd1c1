/* Newton's step of the barrier problem by a Riccati recursion: Rao, Wright and Rawlings (1998);
 * soft rows as in Frison and Diehl (2020).
 *
 * Equations (O...): doc/theory/interior_point.md. */
#include "horizon.h"

/* Slope c' of row i of node k, which is no limit of an input. */
static const double *row_of(const struct horizon *o, long k, int i)
{
    return o->slopes + N_Y * (N_ROWS * k + i - 2 * N_U);
}

/* G += sum stiffness c'^T c' of the inequalities of node k, over n variables (O12). */
static void add_stiffness(const struct horizon *o, long k, int n, double *G)
{
    for (int i = 0; i < N_I; ++i) {
        double stiffness;
        if (!holds_at(o, k, i)) continue;
        condense(o, k, i, &stiffness);
        if (i < 2 * N_U) {
            G[(n + 1) * (N_DX + i % N_U)] += stiffness;
            continue;
        }
        const double *row = row_of(o, k, i);
        for (int a = 0; a < n; ++a) {
            if (row[a] == 0.0) continue;
            for (int b = 0; b < n; ++b) G[n * a + b] += stiffness * row[a] * row[b];
        }
    }
}

/* g -= sum m c'^T (O14). */
static void add_forces(const struct horizon *o, long k, int n, double *g)
{
    for (int i = 0; i < N_I; ++i) {
        double stiffness;
        if (!holds_at(o, k, i)) continue;
        const double m = condense(o, k, i, &stiffness);
        if (i < 2 * N_U) {
            g[N_DX + i % N_U] -= i < N_U ? m : -m;
            continue;
        }
        const double *row = row_of(o, k, i);
        for (int a = 0; a < n; ++a) g[a] -= row[a] * m;
    }
}

/* P of the last node. The end condition (O11) is a spring of stiffness 1 / delta, whose force is
 * nu_next. */
static void last_matrix(const struct horizon *o, double damping, double *P)
{
    memcpy(P, o->h_end, sizeof(double) * N_DX * N_DX);
    for (int i = 0; i < N_DX; ++i) P[N_DX * i + i] += damping;
    add_stiffness(o, o->steps, N_DX, P);
    for (int r = 0; r < N_END; ++r) {
        const double *row = o->e_slope + N_DX * r;
        for (int i = 0; i < N_DX; ++i)
            for (int j = 0; j < N_DX; ++j) P[N_DX * i + j] += row[i] * row[j] / END_REGULARIZATION;
    }
}

/* p of the last node, with (O11). */
static void last_vector(const struct horizon *o, double *p)
{
    memcpy(p, o->g_end, sizeof(double) * N_DX);
    add_forces(o, o->steps, N_DX, p);
    for (int r = 0; r < N_END; ++r) {
        const double m = o->nu[r] + o->e[r] / END_REGULARIZATION;
        for (int i = 0; i < N_DX; ++i) p[i] += o->e_slope[N_DX * r + i] * m;
    }
}

/* P behind step k becomes the one before it; L, K of the inputs (O12), (O13); 1 where the problem
 * is not convex in its inputs. */
static int eliminate(struct horizon *o, long k, double damping, int curved, double *restrict P)
{
    ROOM_OF(PAB, o->workers);
    double *G = PAB + N_DX * N_Y;
    const long square = (long)N_Y * N_Y * k;
    const double *ab = o->ab + (long)N_DX * N_Y * k;
    double *K = o->K + (long)N_U * N_DX * k, *L = o->L + (long)N_U * N_U * k;
    memcpy(o->P + (long)N_DX * N_DX * k, P, sizeof(double) * N_DX * N_DX);
    /* G = H + [A B]^T P [A B] */
    memset(PAB, 0, sizeof(double) * N_DX * N_Y);
    multiply(N_DX, N_DX, N_Y, 0, P, N_DX, 1, ab, PAB);
    memcpy(G, o->h + square, sizeof(double) * N_Y * N_Y);
    for (int i = 0; i < N_Y * N_Y && curved; ++i) G[i] += o->bend[square + i];
    for (int i = 0; i < N_Y; ++i) G[(N_Y + 1) * i] += damping;
    add_stiffness(o, k, N_Y, G);
    multiply(N_Y, N_DX, N_Y, 1, ab, 1, N_Y, PAB, G);
    /* inputs: L L^T = G_uu,  K = L^-T L^-1 G_ux;  P = G_xx - Y^T Y with Y = L^-1 G_ux */
    for (int i = 0; i < N_U; ++i) {
        for (int j = 0; j <= i; ++j) L[N_U * i + j] = G[N_Y * (N_DX + j) + N_DX + i];
        for (int j = 0; j < N_DX; ++j) K[N_DX * i + j] = G[N_Y * j + N_DX + i];
    }
    if (cholesky(N_U, L)) return 1;
    forward(N_U, N_DX, L, K);
    for (int i = 0; i < N_DX; ++i)
        for (int j = i; j < N_DX; ++j) P[N_DX * i + j] = G[N_Y * i + j];
    for (int m = 0; m < N_U; ++m)
        for (int i = 0; i < N_DX; ++i) {
            const double f = K[N_DX * m + i];
            for (int j = i; j < N_DX; ++j) P[N_DX * i + j] -= f * K[N_DX * m + j];
        }
    for (int i = 0; i < N_DX; ++i)
        for (int j = 0; j < i; ++j) P[N_DX * i + j] = P[N_DX * j + i];
    backward(N_U, N_DX, L, K);
    return 0;
}

/* dx of the first node: `start`, and in its moves E f that are free the least cost-to-go,
 * E^T P E f = -E^T (p + P dx) (O16); 1 where there is none. */
static int first_step(const struct horizon *o, double *dx)
{
    ROOM_OF(b, o->workers);
    double *PE = b + N_DX, *L = PE + N_DX;
    const int n = (int)o->n_free;
    memcpy(dx, o->start, sizeof(double) * N_DX);
    for (int i = 0; i < N_DX; ++i)
        for (int j = 0; j < n; ++j)
            if (o->moves[n * i + j] != 0.0) dx[i] = 0.0;
    for (int j = 0; j < n; ++j) {
        b[j] = 0.0;
        for (int i = 0; i < N_DX; ++i) {
            const double *row = o->P_start + N_DX * i;
            PE[i] = 0.0;
            for (int m = 0; m < N_DX; ++m) PE[i] += row[m] * o->moves[n * m + j];
            b[j] -= o->moves[n * i + j] * (o->p_start[i] + dot(N_DX, row, dx));
        }
        for (int l = 0; l < n; ++l) {
            L[n * j + l] = 0.0;
            for (int i = 0; i < N_DX; ++i) L[n * j + l] += o->moves[n * i + l] * PE[i];
        }
    }
    if (cholesky(n, L)) return 1;
    forward(n, 1, L, b);
    backward(n, 1, L, b);
    for (int i = 0; i < N_DX; ++i) dx[i] += dot(n, o->moves + n * i, b);
    return 0;
}

/* The matrices of all nodes (O12), (O13), with the curvature of steps and rows if `curved`; 1
 * where the problem is not convex. */
int ocp_factorize(struct horizon *o, double damping, int curved)
{
    double *P = o->P_start;
    last_matrix(o, damping, P);
    for (long k = o->steps - 1; k >= 0; --k)
        if (eliminate(o, k, damping, curved, P)) return 1;
    return first_step(o, o->dx);
}

/* p behind step k becomes the one before it; feedforward of the inputs (O14). */
static void descend(struct horizon *o, long k, double *restrict p)
{
    ROOM_OF(g, o->workers);
    double *kept = o->p + N_DX * k, *feed = o->feed + N_U * k;
    const double *K = o->K + (long)N_U * N_DX * k;
    memcpy(kept, p, sizeof(double) * N_DX);
    /* g + [A B]^T (P gap + p) */
    times_add(N_DX, N_DX, o->P + (long)N_DX * N_DX * k, o->gap + N_DX * k, p);
    memcpy(g, o->g + N_Y * k, sizeof(double) * N_Y);
    add_forces(o, k, N_Y, g);
    transposed_times_add(N_DX, N_Y, o->ab + (long)N_DX * N_Y * k, p, g);
    /* feed = L^-T L^-1 g_u,  p = g_x - K^T g_u */
    memcpy(p, g, sizeof(double) * N_DX);
    for (int m = 0; m < N_U; ++m) {
        feed[m] = g[N_DX + m];
        for (int i = 0; i < N_DX; ++i) p[i] -= K[N_DX * m + i] * feed[m];
    }
    forward(N_U, 1, o->L + (long)N_U * N_U * k, feed);
    backward(N_U, 1, o->L + (long)N_U * N_U * k, feed);
}

/* Newton's step dx, du with its costates (O14), (O15), by the matrices. */
void ocp_substitute(struct horizon *o)
{
    ROOM_OF(y, o->workers);
    last_vector(o, o->p_start);
    for (long k = o->steps - 1; k >= 0; --k) descend(o, k, o->p_start);
    first_step(o, o->dx);
    for (long k = 0; k < o->steps; ++k) {
        double *du = o->du + N_U * k, *next = o->dx + N_DX * (k + 1);
        double *pi = o->pi_next + N_DX * k;
        /* du = -K dx - feed;  dx' = A dx + B du + gap;  pi' = P dx' + p */
        memcpy(y, o->dx + N_DX * k, sizeof(double) * N_DX);
        memcpy(y + N_DX, o->feed + N_U * k, sizeof(double) * N_U);
        times_add(N_U, N_DX, o->K + (long)N_U * N_DX * k, y, y + N_DX);
        for (int i = 0; i < N_U; ++i) du[i] = y[N_DX + i] = -y[N_DX + i];
        memcpy(next, o->gap + N_DX * k, sizeof(double) * N_DX);
        times_add(N_DX, N_Y, o->ab + (long)N_DX * N_Y * k, y, next);
        memcpy(pi, o->p + N_DX * k, sizeof(double) * N_DX);
        times_add(N_DX, N_DX, o->P + (long)N_DX * N_DX * k, next, pi);
    }
    for (int r = 0; r < N_END; ++r)
        o->nu_next[r] =
            o->nu[r] + (o->e[r] + dot(N_DX, o->e_slope + N_DX * r, o->dx + N_DX * o->steps)) /
                           END_REGULARIZATION;
}
