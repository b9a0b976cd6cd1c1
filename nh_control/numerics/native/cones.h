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

/* The larger number, without the call that fmax needs. */
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
    line->goal = goal;
    if (n == 1) {
        line->D[0][0] = cone->v[0] / cone->u[0];
        line->c[0] = goal / cone->u[0] - cone->v[0];
        return;
    }
    const double det_u = determinant(n, cone->u), det_v = determinant(n, cone->v);
    const double root_u = sqrt(det_u), root_v = sqrt(det_v);
    double a[MOST], W[MOST][MOST], l[MOST], right[MOST] = {goal}, scaled[MOST], product = 1.0;
    /* the scaling point a with |a| = 1: (2 a a^T - J) u / |u| = v / |v| */
    product += dot(n, cone->u, cone->v) / (root_u * root_v);
    const double by = 1.0 / sqrt(2.0 * product), size = sqrt(root_v / root_u);
    for (int i = 0; i < n; ++i)
        a[i] = by * (cone->v[i] / root_v + (i ? -1.0 : 1.0) * cone->u[i] / root_u);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            W[i][j] = size * (i && j ? (i == j) + a[i] * a[j] / (1.0 + a[0]) : a[i + j]);
    for (int i = 0; i < n; ++i) l[i] = dot(n, W[i], cone->u);
    jordan_quotient(n, l, right, scaled);
    for (int i = 0; i < n; ++i) {
        line->c[i] = dot(n, W[i], scaled) - cone->v[i];
        for (int j = 0; j < n; ++j) line->D[i][j] = dot(n, W[i], W[j]); /* W is symmetric */
    }
}

/* The linearization as it is (S22): D = Arw(u)^{-1} Arw(v), c = u^{-1} o (goal, 0) - v. */
static void plain_line(const struct cone *cone, double goal, struct cone_line *line)
{
    const int n = cone->n;
    const double *u = cone->u, *v = cone->v, beta = 1.0 / u[0];
    line->goal = goal;
    if (n == 1) {
        line->D[0][0] = v[0] * beta;
        line->c[0] = goal * beta - v[0];
        return;
    }
    const double det = 1.0 / determinant(n, u);
    double right[MOST];
    jordan_product(n, u, v, right);
    for (int i = 0; i < n; ++i) right[i] = (i ? 0.0 : goal) - right[i];
    line->c[0] = (u[0] * right[0] - dot(n - 1, u + 1, right + 1)) * det;
    for (int i = 1; i < n; ++i) line->c[i] = (right[i] - line->c[0] * u[i]) * beta;
    line->D[0][0] = (u[0] * v[0] - dot(n - 1, u + 1, v + 1)) * det;
    for (int j = 1; j < n; ++j) line->D[0][j] = (u[0] * v[j] - u[j] * v[0]) * det;
    for (int i = 1; i < n; ++i)
        for (int j = 0; j < n; ++j)
            line->D[i][j] = ((j ? (i == j) * v[0] : v[i]) - line->D[0][j] * u[i]) * beta;
}

/* The longest step t for which u + t du stays in the cone. */
static double room(int n, const double *u, const double *du)
{
    if (n == 1) return du[0] < 0.0 ? -u[0] / du[0] : INFINITY;
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
