/* Functions of states of any discrete systems, whose sizes are data here. Sums run in the order of
 * the indices, as in `numpy.cumsum`, with which Python computes the same bits.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include <math.h>

#include "dense_lu.h"
#include "motion.h"

/* out (rows, n): f(a, b, p) of the rows of a (rows, na) and b (rows, nb). */
void nh_pairs(const struct function *f, const double *p, long long rows, long long na,
              const double *a, long long nb, const double *b, long long n, double *out)
{
    for (long long i = 0; i < rows; ++i) call_with(f, a + na * i, b + nb * i, p, out + n * i);
}

/* M, b, X and c at the state x, in the room. */
static void inertia(const struct motion *m, const double *x)
{
    const long long n = m->nrho + m->n_impulses;
    double *mass = m->room, *y = mass + n * n, *basis = y + n, *prescribed = basis + m->nw * n;
    const double *const in[] = {x, m->p};
    double *const out[] = {mass, y, basis, prescribed};
    m->inertia.call(m->inertia.self, in, out);
}

/* y (n), the solution of M y = b by (S1), in place of b; M is lost. 1 where its rank is lower or
 * it is not finite. */
static int solve(const struct motion *m)
{
    const int n = (int)(m->nrho + m->n_impulses), rank = (int)m->rank;
    double *mass = m->room, *y = mass + (size_t)n * n, *end = y + n + m->nw * (n + 1);
    int *pivots = (int *)end;
    if (lu_factor(n, rank, mass, pivots)) return FAILED;
    lu_solve(n, rank, mass, pivots, y);
    return DONE;
}

/* v (nw), the velocity X y + c with M y = b at the state x (S11). */
int nh_velocity(const struct motion *m, const double *x, double *v)
{
    const long long n = m->nrho + m->n_impulses;
    double *mass = m->room, *y = mass + n * n, *basis = y + n, *prescribed = basis + m->nw * n;
    inertia(m, x);
    if (solve(m)) return FAILED;
    for (long long i = 0; i < m->nw; ++i) v[i] = dot(n, basis + n * i, y) + prescribed[i];
    return DONE;
}

/* The state of the velocity of x with the constraint impulses mu (n_impulses) in its momentum
 * (S12). */
int nh_with_impulses(const struct motion *m, const double *x, const double *mu, double *x1)
{
    const long long r = m->nrho, n = r + m->n_impulses;
    double *mass = m->room, *y = mass + n * n;
    inertia(m, x);
    if (solve(m)) return FAILED;
    for (long long i = r; i < n; ++i) y[i] = mu[i - r] - y[i];
    call_with(&m->add_impulses, x, y + r, m->p, x1);
    return DONE;
}

/* The constraint impulses mu (n_impulses) of the state x, the part of its momentum on which the
 * velocity does not depend. */
int nh_impulses(const struct motion *m, const double *x, double *mu)
{
    const long long n = m->nrho + m->n_impulses;
    double *mass = m->room, *y = mass + n * n;
    inertia(m, x);
    if (solve(m)) return FAILED;
    copy(mu, y + m->nrho, m->n_impulses);
    return DONE;
}

/* Energies out (rows) of the states x (rows, nx) by the function energy(q, v, p), with room for v
 * (nw). */
int nh_energies(const struct motion *m, const struct function *energy, long long rows,
                const double *x, double *v, double *out)
{
    for (long long i = 0; i < rows; ++i, x += m->nx) {
        if (nh_velocity(m, x, v)) return FAILED;
        call_with(energy, x, v, m->p, out + i);
    }
    return DONE;
}

/* out (rows, n): constraint(x0, x1, h, p) of the steps from before to after, both (rows, nx). */
int nh_constraints(const struct motion *m, const struct function *constraint, const double *h,
                   long long rows, long long n, const double *before, const double *after,
                   double *out)
{
    for (long long i = 0; i < rows; ++i) {
        const double *const in[] = {before + m->nx * i, after + m->nx * i, h, m->p};
        double *const results[] = {out + n * i};
        constraint->call(constraint->self, in, results);
    }
    return DONE;
}
