/* The LQR tracker of an exported model, u = u_d - K local(x_d, x) within the limits. */
#include "workspace.h"

void MODEL(target)(long k, double *x)
{
    memcpy(x, TARGETS + NX * (k < STEPS ? k : STEPS), sizeof(double) * NX);
}

/* out (m) -= a x for row k of a table of matrices a (m, n): sums in the order of the indices. */
static void subtract_product(const double *table, long k, int m, int n, const double *x,
                             double *out)
{
    for (int i = 0; i < m; ++i) {
        const double *a = table + (long)n * (m * k + i);
        double sum = a[0] * x[0];
        for (int j = 1; j < n; ++j) sum += a[j] * x[j];
        out[i] -= sum;
    }
}

/* The law without limits and its error (NDX); 0 past an end that is not held. */
static int follow(long k, const double *x, double *error, double *u)
{
    const long node = k < STEPS ? k : STEPS, row = k < STEPS ? k : STEPS - 1;
    call_local(TARGETS + NX * node, x, error);
    if (k >= STEPS && !HOLD) { /* no forces, prescribed coordinates do not move */
        for (int i = 0; i < NU; ++i) u[i] = i < NU - N_PRESCRIBED ? 0.0 : x[NQ - NU + i];
        return 0;
    }
    memcpy(u, FEEDFORWARD + NU * row, sizeof(double) * NU);
    subtract_product(GAINS, row, NU, NDX, error, u);
    return 1;
}

static void limit(double *u)
{
    for (int i = 0; i < NU; ++i) {
        if (u[i] < LIMITS[2 * i]) u[i] = LIMITS[2 * i];
        if (u[i] > LIMITS[2 * i + 1]) u[i] = LIMITS[2 * i + 1];
    }
}
