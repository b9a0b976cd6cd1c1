#ifndef NH_CONTACT_PROBLEM_H
#define NH_CONTACT_PROBLEM_H
/* Impulses of contacts with Coulomb friction on their central path, by a primal-dual interior
 * point in Nesterov and Todd's scaling.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>
#include <string.h>

#include "cones.h"
#include "elimination.h"
#include "linear_algebra.h"

/* Numbers that an array of n structs takes. */
#define DOUBLES(type, n) ((n) * (sizeof(struct type) / sizeof(double)))
_Static_assert(sizeof(struct cone) % sizeof(double) == 0, "cone");
_Static_assert(sizeof(struct cone_line) % sizeof(double) == 0, "cone_line");

/* Numbers of room that a problem takes. */
#define PROBLEM_ROOM                                                                              \
    (DOUBLES(cone, 2 * N_CONTACTS) + DOUBLES(cone_line, 2 * N_CONTACTS) + 4 * N_IMPULSES +        \
     N_SLIPS + N_IMPULSES * PADDED(N_IMPULSES))

struct contact_problem {
    const struct system *system;
    const double *G, *b, *mu, *bound; /* (N_IMPULSES, N_IMPULSES), (N_IMPULSES), (N_CONTACTS) */
    double kappa, speed, *room;
};

/* A guess, then the solution: x (N_IMPULSES), w (N_IMPULSES), psi (N_SLIPS). */
struct impulses {
    double *x, *w, *psi;
    enum guess known;
};
#define IMPULSES_ROOM (2 * N_IMPULSES + N_SLIPS)

/* The first n numbers of a room, which then begins behind them. */
static double *take(double **room, size_t n)
{
    double *const first = *room;
    *room += n;
    return first;
}

/* Impulses in a room. */
static struct impulses impulses_in(const struct system *system, double **room)
{
    (void)system;
    double *x = take(room, IMPULSES_ROOM);
    return (struct impulses){x, x + N_IMPULSES, x + 2 * N_IMPULSES, 0};
}

/* The largest size of n numbers. */
static double largest_of(const double *a, int n)
{
    double largest = 0.0;
    for (int i = 0; i < n; ++i) largest = fabs(a[i]) <= largest ? largest : fabs(a[i]);
    return largest;
}

/* The problem w = G x + b with friction and bounds (2, N_CONTACTS), and PROBLEM_ROOM. */
static struct contact_problem problem_of(const struct system *system, const double *G,
                                         const double *b, const double *coefficients, double kappa,
                                         double *room)
{
    (void)system;
    return (struct contact_problem){system,
                                    G,
                                    b,
                                    coefficients,
                                    coefficients + N_CONTACTS,
                                    kappa,
                                    largest_of(b, N_IMPULSES) + 1e-9,
                                    room};
}

/* The bound beta of the friction of contact i under impulses x. */
static double friction_bound(const struct contact_problem *problem, const double *x, int i)
{
    const struct system *system = problem->system;
    (void)system;
    return BLOCKS[i].normal >= 0 ? problem->mu[i] * x[BLOCKS[i].normal] : problem->bound[i];
}

/* The pairs of all contacts; returns their number. */
static int cones_of(const struct contact_problem *problem, const struct impulses *at,
                    struct cone *cones)
{
    const struct system *system = problem->system;
    (void)system;
    int count = 0;
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int normal = BLOCKS[i].normal, t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        if (normal >= 0) cones[count++] = (struct cone){i, 1, {at->x[normal]}, {at->w[normal]}};
        if (!k) continue;
        struct cone *cone = &cones[count++];
        cone->contact = i;
        cone->n = k + 1;
        cone->u[0] = friction_bound(problem, at->x, i);
        cone->v[0] = at->psi[BLOCKS[i].psi];
        for (int j = 0; j < k; ++j) {
            cone->u[j + 1] = at->x[t + j];
            cone->v[j + 1] = at->w[t + j];
        }
    }
    return count;
}

/* The largest entry of u o v - (kappa, 0) of all pairs. */
static double off_path(const struct contact_problem *problem, int count, const struct cone *cones)
{
    double off = 0.0;
    for (int i = 0; i < count; ++i) {
        double jordan[MOST];
        jordan_product(cones[i].n, cones[i].u, cones[i].v, jordan);
        jordan[0] -= problem->kappa;
        for (int j = 0; j < cones[i].n; ++j) off = larger(off, fabs(jordan[j]));
    }
    return off;
}

/* Whether (S18) holds to round-off. */
static int is_solved(const struct contact_problem *problem, int count, const struct cone *cones,
                     const double *error, const double *w)
{
    const struct system *system = problem->system;
    (void)system;
    const double largest = largest_of(w, N_IMPULSES) + problem->speed;
    double product = 0.0;
    if (!(largest_of(error, N_IMPULSES) <= CONTACT_FEASIBLE * largest)) return 0;
    for (int i = 0; i < count; ++i) product = larger(product, cones[i].u[0] * cones[i].v[0]);
    return off_path(problem, count, cones) <=
           fmax(CONTACT_CLOSE * problem->kappa, CONTACT_ROUND_OFF * product);
}

/* Rows of a (n, n), with b (n), are divided by their largest entry: those of contacts that slide
 * are larger by psi^2 / kappa. 1 where one is zero or not finite. */
FOR_EVERY_PROCESSOR
static int equilibrate(int n, double *restrict a, double *restrict b)
{
    for (int i = 0; i < n; ++i) {
        double *restrict row = a + (size_t)n * i;
        const double size = largest_of(row, n);
        if (!(size > 0.0 && size < INFINITY)) return 1;
        const double by = 1.0 / size;
        for (int j = 0; j < n; ++j) row[j] *= by;
        b[i] *= by;
    }
    return 0;
}

/* out = G x; four sums for each row, so that they fill a register. */
FOR_EVERY_PROCESSOR
static void velocities_of(int n, const double *restrict G, const double *restrict x,
                          double *restrict out)
{
    for (int i = 0; i < n; ++i) {
        const double *restrict row = G + (size_t)n * i;
        double sums[4] = {0.0};
        int j = 0;
        for (; j + 4 <= n; j += 4)
            for (int k = 0; k < 4; ++k) sums[k] += row[j + k] * x[j + k];
        for (; j < n; ++j) sums[0] += row[j] * x[j];
        out[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

/* error = w - G x - b. */
static void velocity_error(const struct contact_problem *problem, const struct impulses *at,
                           double *error)
{
    const struct system *system = problem->system;
    (void)system;
    velocities_of(N_IMPULSES, problem->G, at->x, error);
    for (int i = 0; i < N_IMPULSES; ++i) error[i] = at->w[i] - error[i] - problem->b[i];
}

/* dw = G dx - error. */
static void velocity_change(const struct contact_problem *problem, const double *dx,
                            const double *error, double *dw)
{
    const struct system *system = problem->system;
    (void)system;
    velocities_of(N_IMPULSES, problem->G, dx, dw);
    for (int i = 0; i < N_IMPULSES; ++i) dw[i] -= error[i];
}

/* dx of (S23) with error = w - G x - b; 1 where there is none. */
static int impulse_direction(const struct contact_problem *problem, int count,
                             const struct cone *cones, const struct cone_line *lines,
                             const double *error, double *dx, double *room)
{
    const struct system *system = problem->system;
    const int n = N_IMPULSES, length = PADDED(n);
    double *A = take(&room, (size_t)n * length);
    (void)system;
    for (int i = 0; i < n; ++i) {
        double *row = A + (size_t)length * i;
        memset(row + length - WIDTH, 0, sizeof(double) * WIDTH);
        memcpy(row, problem->G + (size_t)n * i, sizeof(double) * n);
    }
    memcpy(dx, error, sizeof(double) * n);
    for (int i = 0; i < count; ++i) {
        const int contact = cones[i].contact, normal = BLOCKS[contact].normal;
        const int t = BLOCKS[contact].tangent;
        if (cones[i].n == 1) {
            A[(size_t)length * normal + normal] += lines[i].D[0][0];
            dx[normal] += lines[i].c[0];
            continue;
        }
        for (int j = 1; j < cones[i].n; ++j) {
            double *row = A + (size_t)length * (t + j - 1);
            dx[t + j - 1] += lines[i].c[j];
            for (int l = 1; l < cones[i].n; ++l) row[t + l - 1] += lines[i].D[j][l];
            if (normal >= 0) row[normal] += problem->mu[contact] * lines[i].D[j][0];
        }
    }
    return eliminate(n, A, dx, room);
}

/* The longest step of all pairs along dx, dw, and the directions dpsi of the slip bounds, which
 * follow from the first rows of (S20). */
static double longest_step(const struct contact_problem *problem, int count,
                           const struct cone *cones, const struct cone_line *lines,
                           const double *dx, const double *dw, double *dpsi)
{
    const struct system *system = problem->system;
    (void)system;
    double step = 1.0;
    for (int i = 0; i < count; ++i) {
        const struct cone *cone = &cones[i];
        const int contact = cone->contact, n = cone->n, normal = BLOCKS[contact].normal;
        double du[MOST], dv[MOST] = {0.0};
        if (n == 1) {
            du[0] = dx[normal];
            dv[0] = dw[normal];
        } else {
            du[0] = normal >= 0 ? problem->mu[contact] * dx[normal] : 0.0;
            for (int j = 1; j < n; ++j) {
                du[j] = dx[BLOCKS[contact].tangent + j - 1];
                dv[j] = dw[BLOCKS[contact].tangent + j - 1];
            }
            dv[0] = (lines[i].goal - dot(n, cone->u, cone->v) - dot(n, cone->v, du) -
                     dot(n, cone->u, dv)) /
                    cone->u[0];
            dpsi[BLOCKS[contact].psi] = dv[0];
        }
        step = fmin(step, CONTACT_BACK * room(n, cone->u, du));
        step = fmin(step, CONTACT_BACK * room(n, cone->v, dv));
    }
    return step;
}

/* A start inside of all cones, near the central path of the size of the closing contacts: there w
 * is the velocity without impulses, and x would stop it alone. */
static void near_path(const struct contact_problem *problem, struct impulses *at)
{
    const struct system *system = problem->system;
    (void)system;
    const double *b = problem->b;
    double height = problem->kappa, closing = 0.0;
    memset(at->x, 0, sizeof(double) * N_IMPULSES);
    memset(at->w, 0, sizeof(double) * N_IMPULSES);
    for (int i = 0; i < N_CONTACTS; ++i)
        if (BLOCKS[i].normal >= 0) closing = larger(closing, -b[BLOCKS[i].normal]);
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal;
        if (n < 0) continue;
        at->w[n] = larger(fabs(b[n]), CONTACT_LEAST * closing + 1e-9);
        if (b[n] > 0.0) continue;
        at->x[n] = at->w[n] / problem->G[N_IMPULSES * n + n];
        height = larger(height, at->w[n] * at->x[n]);
    }
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal, t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        if (n >= 0 && b[n] > 0.0) at->x[n] = height / at->w[n];
        if (!k) continue;
        const double beta = friction_bound(problem, at->x, i);
        const double slip = sqrt(dot(k, b + t, b + t));
        at->psi[BLOCKS[i].psi] = larger(slip, larger(beta > 0.0 ? height / beta : 0.0, 1e-9));
    }
}

/* A start inside of all cones, of the size of all velocities without impulses: it takes more
 * iterations, and ends where those from near the path stall at the edge of a cone. */
static void far_inside(const struct contact_problem *problem, struct impulses *at)
{
    const struct system *system = problem->system;
    (void)system;
    memset(at->x, 0, sizeof(double) * N_IMPULSES);
    memset(at->w, 0, sizeof(double) * N_IMPULSES);
    for (int i = 0; i < N_SLIPS; ++i) at->psi[i] = problem->speed;
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal;
        if (n < 0) continue;
        at->w[n] = larger(fabs(problem->b[n]), CONTACT_LEAST * problem->speed);
        at->x[n] = at->w[n] / problem->G[N_IMPULSES * n + n];
    }
}

/* The arrays of an iteration, and what is left of the problem's room. */
struct iteration_room {
    struct cone *cones;
    struct cone_line *lines;
    double *error, *dx, *dw, *dpsi, *rest;
};

static struct iteration_room iteration_room(const struct contact_problem *problem)
{
    const struct system *system = problem->system;
    double *room = problem->room;
    struct iteration_room in;
    (void)system;
    in.cones = (struct cone *)take(&room, DOUBLES(cone, 2 * N_CONTACTS));
    in.lines = (struct cone_line *)take(&room, DOUBLES(cone_line, 2 * N_CONTACTS));
    in.error = take(&room, N_IMPULSES);
    in.dx = take(&room, N_IMPULSES);
    in.dw = take(&room, N_IMPULSES);
    in.dpsi = take(&room, N_SLIPS);
    in.rest = room;
    return in;
}

/* Whether the iteration from inside of all cones ends at a solution of (S18); from a guess, which
 * is `warm`, it gives up early. */
static int contact_iteration(const struct contact_problem *problem, int warm, struct impulses *at)
{
    const struct system *system = problem->system;
    const struct iteration_room in = iteration_room(problem);
    (void)system;
    int was_short = 0;
    for (int iteration = 0; iteration < CONTACT_ITERATIONS; ++iteration) {
        velocity_error(problem, at, in.error);
        const int count = cones_of(problem, at, in.cones);
        if (is_solved(problem, count, in.cones, in.error, at->w)) return 1;
        double largest = 0.0, sum = 0.0;
        for (int i = 0; i < count; ++i) {
            const double product = dot(in.cones[i].n, in.cones[i].u, in.cones[i].v);
            largest = larger(largest, product);
            sum += product;
        }
        const int near = largest <= CONTACT_NEAR * problem->kappa && !was_short;
        const double goal = fmax(problem->kappa, CONTACT_CENTERING * sum / count);
        for (int i = 0; i < count; ++i) {
            if (near) plain_line(&in.cones[i], problem->kappa, &in.lines[i]);
            else scaled_line(&in.cones[i], goal, &in.lines[i]);
        }
        if (impulse_direction(problem, count, in.cones, in.lines, in.error, in.dx, in.rest))
            return 0;
        /* not c - D dx, whose terms are as large as psi^2 / kappa: w = G x + b stays exact */
        velocity_change(problem, in.dx, in.error, in.dw);
        const double step =
            longest_step(problem, count, in.cones, in.lines, in.dx, in.dw, in.dpsi);
        if (!isfinite(step) || (warm && step < CONTACT_SHORT)) return 0;
        was_short = step < CONTACT_SHORT && !was_short;
        for (int i = 0; i < N_IMPULSES; ++i) {
            at->x[i] += step * in.dx[i];
            at->w[i] += step * in.dw[i];
        }
        for (int i = 0; i < N_SLIPS; ++i) at->psi[i] += step * in.dpsi[i];
    }
    return 0;
}

/* A start with the impulses x_n = kappa / w_n that hold the gaps w_n open, as those of the last
 * step did, and with friction that slides or sticks as it would with them; all pairs are on the
 * central path. Room for v and w (N_IMPULSES). */
static void start_at_gaps(const struct contact_problem *problem, struct impulses *at, double *v,
                          double *w)
{
    const struct system *system = problem->system;
    (void)system;
    const double *b = problem->b, kappa = problem->kappa;
    memset(at->x, 0, sizeof(double) * N_IMPULSES);
    for (int i = 0; i < N_CONTACTS; ++i)
        if (BLOCKS[i].normal >= 0) at->x[BLOCKS[i].normal] = kappa / at->w[BLOCKS[i].normal];
    velocities_of(N_IMPULSES, problem->G, at->x, v);
    for (int i = 0; i < N_IMPULSES; ++i) v[i] += b[i];
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        const double slip = k ? sqrt(dot(k, v + t, v + t)) : 0.0;
        for (int j = t; j < t + k && slip > 0.0; ++j)
            at->x[j] = -friction_bound(problem, at->x, i) * v[j] / slip;
    }
    velocities_of(N_IMPULSES, problem->G, at->x, w);
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        if (!k) continue;
        const int slides = dot(k, v + t, w + t) + dot(k, v + t, b + t) > 0.0;
        const double beta = friction_bound(problem, at->x, i), half = 0.5 * kappa / beta;
        for (int j = t; j < t + k; ++j) at->w[j] = slides ? w[j] + b[j] : 0.0;
        const double psi = half + sqrt(half * half + dot(k, at->w + t, at->w + t));
        at->psi[BLOCKS[i].psi] = psi;
        for (int j = t; j < t + k; ++j) at->x[j] = -beta * at->w[j] / psi;
    }
}

/* Whether the problem has been solved: from the guess, from near the path, or from far inside. */
static int find_impulses(const struct contact_problem *problem, struct impulses *at)
{
    const int starts = at->known != UNKNOWN;
    if (at->known == STARTS_AT_GAPS)
        start_at_gaps(problem, at, iteration_room(problem).dx, iteration_room(problem).dw);
    at->known = LAST_IMPULSES;
    if (starts && contact_iteration(problem, 1, at)) return 1;
    near_path(problem, at);
    if (contact_iteration(problem, 0, at)) return 1;
    far_inside(problem, at);
    if (contact_iteration(problem, 0, at)) return 1;
    at->known = UNKNOWN;
    return 0;
}

/* Whether a solution was taken to round-off, by Newton's corrections (S22): each leaves its
 * square. Impulses that are redundant keep a round-off that is larger by the condition of the
 * problem. */
__attribute__((unused)) static int settle_impulses(const struct contact_problem *problem,
                                                   struct impulses *at)
{
    const struct system *system = problem->system;
    const struct iteration_room in = iteration_room(problem);
    (void)system;
    double change = INFINITY;
    for (int k = 0; k < CONTACT_CORRECTIONS && !(change * change <= CONTACT_ROUND_OFF); ++k) {
        velocity_error(problem, at, in.error);
        const int count = cones_of(problem, at, in.cones);
        for (int i = 0; i < count; ++i) plain_line(&in.cones[i], problem->kappa, &in.lines[i]);
        if (impulse_direction(problem, count, in.cones, in.lines, in.error, in.dx, in.rest))
            return 0;
        velocity_change(problem, in.dx, in.error, in.dw);
        longest_step(problem, count, in.cones, in.lines, in.dx, in.dw, in.dpsi);
        for (int i = 0; i < N_IMPULSES; ++i) {
            at->x[i] += in.dx[i];
            at->w[i] += in.dw[i];
        }
        for (int i = 0; i < N_SLIPS; ++i) at->psi[i] += in.dpsi[i];
        change = fmax(largest_of(in.dx, N_IMPULSES) / largest_of(at->x, N_IMPULSES),
                      N_SLIPS ? largest_of(in.dpsi, N_SLIPS) / largest_of(at->psi, N_SLIPS) : 0.0);
    }
    return change <= CONTACT_STALLED;
}
#endif
