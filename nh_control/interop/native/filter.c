/* The extended Kalman filter of an exported model, control/estimation.py: x (NX) and P (NDX, NDX)
 * change in place, and keep their values if a call fails. */
#include "dense_lu.h"
#include "workspace.h"

enum { N_ROOM = NDX * (NDX > NE ? NDX : NE) };

/* out (n, m) = a b for a (n, l), b (l, m). */
static void product_of(int n, int l, int m, const double *a, const double *b, double *out)
{
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; ++j) {
            double sum = 0.0;
            for (int k = 0; k < l; ++k) sum += a[l * i + k] * b[m * k + j];
            out[m * i + j] = sum;
        }
}

/* out (n, n) = a P a^T + s for a (n, l), P (l, l), s (n, n). */
static void congruence(int n, int l, const double *a, const double *P, const double *s,
                       double *room, double *out)
{
    product_of(n, l, l, a, P, room);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = s ? s[n * i + j] : 0.0;
            for (int k = 0; k < l; ++k) sum += room[l * i + k] * a[l * j + k];
            out[n * i + j] = sum;
        }
}

int MODEL(predict)(double *x, double *P, const double *u, const double *W)
{
    double x1[NX], A[NDX * NDX], B[NDX * NU + 1], room[NDX * NDX], P1[NDX * NDX];
    const int status = MODEL(linearize)(x, u, x1, A, B);
    if (status != CONVERGED) return status;
    congruence(NDX, NDX, A, P, W, room, P1); /* P <- A P A^T + W */
    memcpy(x, x1, sizeof x1);
    memcpy(P, P1, sizeof P1);
    return CONVERGED;
}

int MODEL(update)(double *x, double *P, const double *y, const double *V)
{
    double e[NE], H[NE * NDX], S[NE * NE], K[NDX * NE], dx[NDX], x1[NX];
    double rest[NDX * NDX], T[NDX * NDX], noise[NDX * NDX], P1[NDX * NDX], room[N_ROOM];
    double HP[NE * NDX];
    int pivots[NE];
    call_innovation(x, y, e, H);
    congruence(NE, NDX, H, P, V, HP, S); /* S = H P H^T + V, and HP = H P */
    if (lu_factor(NE, NE, S, pivots)) return SINGULAR;
    for (int i = 0; i < NDX; ++i) { /* K = (S^{-1} H P)^T */
        for (int j = 0; j < NE; ++j) K[NE * i + j] = HP[NDX * j + i];
        lu_solve(NE, NE, S, pivots, K + NE * i);
    }
    product_of(NDX, NE, 1, K, e, dx);
    call_correct(x, dx, x1, T);
    if (!are_finite(NX, x1)) return NOT_FINITE;
    /* P <- T ((1 - K H) P (1 - K H)^T + K V K^T) T^T, Joseph's form at the new estimate */
    product_of(NDX, NE, NDX, K, H, rest);
    for (int i = 0; i < NDX * NDX; ++i) rest[i] = (i % (NDX + 1) == 0) - rest[i];
    congruence(NDX, NE, K, V, NULL, room, noise);
    congruence(NDX, NDX, rest, P, noise, room, P1);
    congruence(NDX, NDX, T, P1, NULL, room, noise);
    for (int i = 0; i < NDX; ++i)
        for (int j = 0; j < NDX; ++j)
            P[NDX * i + j] = (noise[NDX * i + j] + noise[NDX * j + i]) / 2.0;
    memcpy(x, x1, sizeof x1);
    return CONVERGED;
}

void MODEL(measure)(const double *x, double *y) { call_measure(x, y); }
