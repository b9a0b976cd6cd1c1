/* Anderson mixing of Newton's steps without second derivatives: Walker and Ni (2011).
 *
 * Equations (O...): doc/theory/interior_point.md. */
#include "horizon.h"

/* Numbers of a step: (dx, du) of all nodes, then the costates. */
static long numbers(const struct horizon *o) { return (N_Y + N_DX) * o->steps + N_Y; }

/* Newton's step as one vector v. */
static void gather(const struct horizon *o, double *v)
{
    double *pi = v + N_Y * (o->steps + 1);
    for (long k = 0; k <= o->steps; ++k) {
        memcpy(v + N_Y * k, o->dx + N_DX * k, sizeof(double) * N_DX);
        if (k < o->steps) memcpy(v + N_Y * k + N_DX, o->du + N_U * k, sizeof(double) * N_U);
    }
    for (long i = 0; i < N_DX * o->steps; ++i) pi[i] = o->pi_next[i] - o->pi[i];
}

/* Newton's step less a v. */
static void subtract(struct horizon *o, double a, const double *v)
{
    const double *pi = v + N_Y * (o->steps + 1);
    for (long k = 0; k <= o->steps; ++k) {
        for (int i = 0; i < N_DX; ++i) o->dx[N_DX * k + i] -= a * v[N_Y * k + i];
        for (int i = 0; i < N_U && k < o->steps; ++i)
            o->du[N_U * k + i] -= a * v[N_Y * k + N_DX + i];
    }
    for (long i = 0; i < N_DX * o->steps; ++i) o->pi_next[i] -= a * pi[i];
}

/* a . b in the metric of the cost's Hessians. */
static double product(const struct horizon *o, const double *a, const double *b)
{
    double sum = 0.0;
    for (long k = 0; k <= o->steps; ++k) {
        const int n = k < o->steps ? N_Y : N_DX;
        const double *h = k < o->steps ? o->h + (long)N_Y * N_Y * k : o->h_end;
        for (int i = 0; i < n; ++i) sum += a[N_Y * k + i] * dot(n, h + n * i, b + N_Y * k);
    }
    return sum;
}

/* Newton's step d becomes d - sum gamma_j (move_j + change_j), with the gamma that minimize
 * |d - sum gamma_j change_j| (O25); 1 where it does. */
int ocp_mix(struct horizon *o)
{
    const long n = numbers(o);
    double G[MIXED * MIXED], gamma[MIXED];
    /* the change of Newton's step since the last iterate, and that of the iterate */
    if (o->mixed >= 0) {
        const long slot = o->mixed % MIXED;
        double *change = o->step_changes + n * slot, *point = o->point_changes + n * slot;
        for (long i = 0; i < n; ++i) change[i] = -o->newton[i];
        gather(o, o->newton);
        for (long i = 0; i < n; ++i) {
            change[i] += o->newton[i];
            point[i] = o->total[i] + change[i];
        }
    } else {
        gather(o, o->newton);
    }
    const int count = (int)(++o->mixed < MIXED ? o->mixed : MIXED);
    for (int i = 0; i < count; ++i) {
        const double *change = o->step_changes + n * i;
        for (int j = 0; j <= i; ++j)
            G[count * i + j] = product(o, change, o->step_changes + n * j);
        G[(count + 1) * i] *= 1 + 1e-8; /* for changes that are nearly dependent */
        gamma[i] = product(o, change, o->newton);
    }
    if (!count || cholesky(count, G)) return 0;
    forward(count, 1, G, gamma);
    backward(count, 1, G, gamma);
    for (int i = 0; i < count; ++i) subtract(o, gamma[i], o->point_changes + n * i);
    return 1;
}
