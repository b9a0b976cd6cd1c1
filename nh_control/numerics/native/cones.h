#ifndef NH_CONES_H
#define NH_CONES_H
/* Pairs of vectors in second-order cones, as contacts have them, and their linearizations.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>

#include "contact_constants.h"

/* Numbers of a vector in a cone: one and two tangents. */
#define MOST 3

/* A pair u = (beta, g), v = (psi, s) of n numbers, or (x_n, w_n) of one. */
struct cone {
    int contact, n;
    double u[MOST], v[MOST];
};

/* A linearized pair (S20). */
struct cone_line {
    double c[MOST], D[MOST][MOST], goal;
};

/* The larger number; unlike fmax it costs no call. */
static inline double larger(double a, double b) { return a > b ? a : b; }

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* u_0^2 - |u_1|^2, at least what round-off leaves. */
static double determinant(int n, const double *u)
{
    const double length = sqrt(dot(n - 1, u + 1, u + 1));
    const double product = (u[0] - length) * (u[0] + length), least = CONE_FLOOR * u[0] * u[0];
    return product > least ? product : least;
}

/* Jordan's product out = a o b (S19). */
static void jordan_product(int n, const double *a, const double *b, double *out)
{
    out[0] = dot(n, a, b);
    for (int i = 1; i < n; ++i) out[i] = a[0] * b[i] + b[0] * a[i];
}

/* The solution out of a o out = b. */
static void jordan_quotient(int n, const double *a, const double *b, double *out)
{
    out[0] = (a[0] * b[0] - dot(n - 1, a + 1, b + 1)) / determinant(n, a);
    for (int i = 1; i < n; ++i) out[i] = (b[i] - out[0] * a[i]) / a[0];
}

/* The linearization in the scaling (S21). */
static void scaled_line(const struct cone *cone, double goal, struct cone_line *line)
{
    const int n = cone->n;
    const double det_u = determinant(n, cone->u), det_v = determinant(n, cone->v);
    double a[MOST], W[MOST][MOST], l[MOST], right[MOST] = {goal}, scaled[MOST], product = 1.0;
    /* the scaling point a with |a| = 1: (2 a a^T - J) u / |u| = v / |v| */
    product += dot(n, cone->u, cone->v) / sqrt(det_u * det_v);
    for (int i = 0; i < n; ++i)
        a[i] = (cone->v[i] / sqrt(det_v) + (i ? -1.0 : 1.0) * cone->u[i] / sqrt(det_u)) /
               sqrt(2.0 * product);
    const double size = sqrt(sqrt(det_v / det_u));
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            W[i][j] = size * (i && j ? (i == j) + a[i] * a[j] / (1.0 + a[0]) : a[i + j]);
    for (int i = 0; i < n; ++i) l[i] = dot(n, W[i], cone->u);
    jordan_quotient(n, l, right, scaled);
    for (int i = 0; i < n; ++i) {
        line->c[i] = dot(n, W[i], scaled) - cone->v[i];
        for (int j = 0; j < n; ++j) line->D[i][j] = dot(n, W[i], W[j]); /* W is symmetric */
    }
    line->goal = goal;
}

/* The linearization as it is (S22). */
static void plain_line(const struct cone *cone, double goal, struct cone_line *line)
{
    const int n = cone->n;
    double right[MOST], column[MOST];
    jordan_product(n, cone->u, cone->v, right);
    for (int i = 0; i < n; ++i) right[i] = (i ? 0.0 : goal) - right[i];
    jordan_quotient(n, cone->u, right, line->c);
    for (int j = 0; j < n; ++j) {
        double unit[MOST] = {0.0};
        unit[j] = 1.0;
        jordan_product(n, cone->v, unit, right);
        jordan_quotient(n, cone->u, right, column);
        for (int i = 0; i < n; ++i) line->D[i][j] = column[i];
    }
    line->goal = goal;
}

/* The longest step t for which u + t du stays in the cone. */
static double room(int n, const double *u, const double *du)
{
    /* a t^2 + 2 b t + c = 0 on its boundary */
    const double a = du[0] * du[0] - dot(n - 1, du + 1, du + 1);
    const double b = u[0] * du[0] - dot(n - 1, u + 1, du + 1), c = determinant(n, u);
    double best = du[0] < 0.0 ? -u[0] / du[0] : INFINITY;
    const double inside = b * b - a * c;
    if (inside >= 0.0) {
        const double root = b > 0.0 ? -b - sqrt(inside) : -b + sqrt(inside);
        if (a != 0.0 && root / a > 0.0 && root / a < best) best = root / a;
        if (root != 0.0 && c / root > 0.0 && c / root < best) best = c / root;
    }
    return best;
}
#endif
