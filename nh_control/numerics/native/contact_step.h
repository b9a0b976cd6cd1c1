#ifndef NH_CONTACT_STEP_H
#define NH_CONTACT_STEP_H
/* The start of a step with contacts: Newton's method on the dynamics, with a contact problem in
 * each iteration. z = (y, x, psi): other unknowns, impulses, slip bounds.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_problem.h"

/* Numbers of room that a start takes. */
#define START_ROOM                                                                                \
    (N_Z + N_IMPULSES + N_IMPULSES * N_FIRST + 2 * N_CONTACTS + N_FIRST * (1 + N_IMPULSES) +      \
     N_IMPULSES * N_IMPULSES + N_IMPULSES + IMPULSES_ROOM + PROBLEM_ROOM + N_FIRST * N_FIRST +    \
     N_FIRST)

/* The columns y (N_FIRST, 1 + N_IMPULSES) of dy = y_0 + y_x x (S25); 1 where r_y is singular. */
static int free_motion(const struct system *system, const double *r, const double *r_z,
                       const double *x, double *y, double *room)
{
    double *r_y = take(&room, N_FIRST * N_FIRST);
    int *pivots = (int *)room, rank = N_FIRST - N_Z + N_RANK;
    (void)system;
    for (int i = 0; i < N_FIRST; ++i) {
        const double *row = r_z + (size_t)N_Z * i;
        double *right = y + (size_t)(1 + N_IMPULSES) * i;
        memcpy(r_y + (size_t)N_FIRST * i, row, sizeof(double) * N_FIRST);
        right[0] = dot(N_IMPULSES, row + N_FIRST, x) - r[i];
        for (int j = 0; j < N_IMPULSES; ++j) right[1 + j] = -row[N_FIRST + j];
    }
    if (lu_factor(N_FIRST, rank, r_y, pivots)) return 1;
    lu_solve_rows(N_FIRST, rank, 1 + N_IMPULSES, r_y, pivots, y);
    return 0;
}

/* G (N_IMPULSES, N_IMPULSES) and b (N_IMPULSES) of w + w_y dy (S25). */
static void linear_velocities(const struct system *system, const double *w, const double *w_y,
                              const double *y, double *G, double *b)
{
    (void)system;
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
static int contact_start(const struct system *system, const double *x, const double *u,
                         const double *p, double *z, double *r_z, double *room)
{
    double *r = take(&room, N_Z), *w = take(&room, N_IMPULSES);
    double *w_y = take(&room, N_IMPULSES * N_FIRST), *coefficients = take(&room, 2 * N_CONTACTS);
    double *y = take(&room, N_FIRST * (1 + N_IMPULSES)), *b = take(&room, N_IMPULSES);
    double *G = take(&room, N_IMPULSES * N_IMPULSES), last = INFINITY;
    struct impulses at = impulses_in(system, &room);
    double *problem_room = take(&room, PROBLEM_ROOM);
    for (int iteration = 0; iteration < CONTACT_OUTER_ITERATIONS; ++iteration) {
        call_residual(system, x, u, z, p, r);
        call_jacobian(system, x, u, z, p, r_z);
        call_contacts(system, x, u, z, p, w, w_y, coefficients);
        if (free_motion(system, r, r_z, z + N_FIRST, y, room)) return 0;
        linear_velocities(system, w, w_y, y, G, b);
        const struct contact_problem problem =
            problem_of(system, G, b, coefficients, p[N_P - 2], problem_room);
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
        memcpy(z + N_FIRST, at.x, sizeof(double) * N_IMPULSES);
        memcpy(z + N_FIRST + N_IMPULSES, at.psi, sizeof(double) * N_SLIPS);
        if (change <= CONTACT_SETTLED * size) return 1;
        if (change <= CONTACT_STALLED * size && change >= last / 4.0) return 1;
        last = change;
    }
    return 0;
}

/* Whether a solution lies on the central path: the products of all pairs are positive, so signs of
 * the normal impulses and of psi are those of all numbers of the cones. */
static int is_inside(const struct system *system, const double *z)
{
    (void)system;
    for (int i = 0; i < N_CONTACTS; ++i)
        if (BLOCKS[i].normal >= 0 && !(z[N_FIRST + BLOCKS[i].normal] > 0.0)) return 0;
    for (int i = 0; i < N_SLIPS; ++i)
        if (!(z[N_FIRST + N_IMPULSES + i] > 0.0)) return 0;
    return 1;
}
#endif
