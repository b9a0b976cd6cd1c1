#ifndef NH_CONTACT_STEP_H
#define NH_CONTACT_STEP_H
/* The start of a step with contacts: Newton's method on the dynamics, with a contact problem in
 * each iteration; the twin of discrete/contact_step.py. z = (y, x, psi): other unknowns, impulses,
 * slip bounds.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_problem.h"
#include "system.h"

/* The columns y (N_FIRST, 1 + N_IMPULSES) of dy = y_0 + y_x x (S24); 1 where r_y is singular. */
static int free_motion(const double *r, const double *r_z, const double *x, double *y)
{
    double r_y[N_FIRST * N_FIRST];
    int pivots[N_FIRST];
    for (int i = 0; i < N_FIRST; ++i) {
        const double *row = r_z + (size_t)N_Z * i;
        double *right = y + (size_t)(1 + N_IMPULSES) * i;
        memcpy(r_y + (size_t)N_FIRST * i, row, sizeof(double) * N_FIRST);
        right[0] = dot(N_IMPULSES, row + N_FIRST, x) - r[i];
        for (int j = 0; j < N_IMPULSES; ++j) right[1 + j] = -row[N_FIRST + j];
    }
    if (lu_factor(N_FIRST, r_y, pivots)) return 1;
    lu_solve_rows(N_FIRST, 1 + N_IMPULSES, r_y, pivots, y);
    return 0;
}

/* G (N_IMPULSES, N_IMPULSES) and b (N_IMPULSES) of w + w_y dy (S24). */
static void linear_velocities(const double *w, const double *w_y, const double *y, double *G,
                              double *b)
{
    for (int i = 0; i < N_IMPULSES; ++i) {
        b[i] = w[i];
        memset(G + (size_t)N_IMPULSES * i, 0, sizeof(double) * N_IMPULSES);
        for (int k = 0; k < N_FIRST; ++k) {
            const double f = w_y[(size_t)N_FIRST * i + k];
            const double *row = y + (size_t)(1 + N_IMPULSES) * k;
            if (f == 0.0) continue;
            b[i] += f * row[0];
            for (int j = 0; j < N_IMPULSES; ++j) G[N_IMPULSES * i + j] += f * row[1 + j];
        }
    }
}

/* Whether z (N_Z) has been found, from its first unknowns, to where Newton's method on all
 * equations converges. r_z: room for (N_Z, N_Z). */
static int contact_start(const double *x, const double *u, const double *p, double *z, double *r_z)
{
    double r[N_Z], w[N_IMPULSES], w_y[N_IMPULSES * N_FIRST], coefficients[2 * N_CONTACTS];
    double y[N_FIRST * (1 + N_IMPULSES)], G[N_IMPULSES * N_IMPULSES], b[N_IMPULSES];
    struct impulses at = {.known = 0};
    double last = INFINITY;
    for (int iteration = 0; iteration < CONTACT_OUTER_ITERATIONS; ++iteration) {
        call_residual(x, u, z, p, r);
        call_jacobian(x, u, z, p, r_z);
        call_contacts(x, u, z, p, w, w_y, coefficients);
        if (free_motion(r, r_z, z + N_FIRST, y)) return 0;
        linear_velocities(w, w_y, y, G, b);
        const struct contact_problem problem = problem_of(G, b, coefficients, p[N_P - 2]);
        double change = 0.0, size = 0.0;
        if (!find_impulses(&problem, &at)) return 0;
        for (int i = 0; i < N_FIRST; ++i) {
            const double *row = y + (size_t)(1 + N_IMPULSES) * i;
            const double dy = row[0] + dot(N_IMPULSES, row + 1, at.x);
            if (!isfinite(dy)) return 0;
            z[i] += dy;
            change = fmax(change, fabs(dy));
            size = fmax(size, fmax(fabs(z[i]), fabs(row[0])));
        }
        memcpy(z + N_FIRST, at.x, sizeof at.x);
        memcpy(z + N_FIRST + N_IMPULSES, at.psi, sizeof(double) * N_SLIPS);
        if (change <= CONTACT_SETTLED * size) return 1;
        if (change <= CONTACT_STALLED * size && change >= last / 4.0) return 1;
        last = change;
    }
    return 0;
}

/* Whether a solution lies on the central path: the products of all pairs are positive, so signs of
 * the normal impulses and of psi are those of all numbers of the cones. */
static int is_inside(const double *z)
{
    for (int i = 0; i < N_CONTACTS; ++i)
        if (BLOCKS[i].normal >= 0 && !(z[N_FIRST + BLOCKS[i].normal] > 0.0)) return 0;
    for (int i = 0; i < N_SLIPS; ++i)
        if (!(z[N_FIRST + N_IMPULSES + i] > 0.0)) return 0;
    return 1;
}
#endif
