#ifndef NH_CONTACT_PATH_H
#define NH_CONTACT_PATH_H
/* The central path of a step with contacts, followed by its length from a large kappa to its own:
 * r(z, s) = 0, s = log(kappa).
 *
 * Two things stop methods that only lower kappa. First, friction couples the normal impulses, so
 * that the path may fold: kappa has to rise before it can fall further. Second, the impulses act
 * at the start of the step, but slips are taken at its middle and gaps at its end. With redundant
 * contacts, the contact problem of contact_start may therefore have no solution although the step
 * has one. Both are passed with kappa as a further unknown [allgower1990]: a step along the
 * tangent, then Newton's method orthogonal to it (S26). The sizes of the impulses among the
 * unknowns are the normal impulse and the bound of friction; divided by them, no step multiplies
 * an impulse by a large factor.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_step.h"

/* Unknowns of the path: (y, x / size, psi, s), s = log(kappa). */
#define N_PATH (N_Z + 1)

struct path {
    const struct system *system;
    const double *x, *u, *p;
    double *z, s;    /* a place on the path */
    double *size;    /* of the unknowns (N_Z): that of impulses, 1 of others */
    double *tangent; /* of (y, x / size, psi, s) */
    double *ahead;   /* the part of it in (x / size, s) */
    double *room;
};

/* Numbers of room that a path takes: its own, those of `advance`, and of what that calls. */
#define PATH_ROOM                                                                                 \
    (4 * N_PATH + N_P + 3 * N_PATH + N_Z + DOUBLES(cone, 2 * N_CONTACTS) + N_IMPULSES * N_FIRST + \
     2 * N_CONTACTS + IMPULSES_ROOM + N_P + N_Z * N_Z + N_PATH * N_PATH + N_PATH)

/* A path from z, at the smoothing of p. */
static struct path path_from(const struct system *system, const double *x, const double *u,
                             const double *p, const double *z, double *room)
{
    struct path path = {system, x, u, p, .s = log(p[N_P - 2])};
    path.z = take(&room, N_PATH);
    path.size = take(&room, N_PATH);
    path.tangent = take(&room, N_PATH);
    path.ahead = take(&room, N_PATH);
    path.room = room;
    memcpy(path.z, z, sizeof(double) * N_Z);
    for (int i = 0; i < N_Z; ++i) path.size[i] = 1.0;
    memset(path.ahead, 0, sizeof(double) * N_PATH);
    return path;
}

/* p (N_P) with the smoothing exp(s). */
static void smoothed(const struct system *system, const double *p, double s, double *out)
{
    (void)system;
    memcpy(out, p, sizeof(double) * N_P);
    out[N_P - 2] = exp(s);
}

static int is_in_cone(int n, const double *u) { return u[0] > sqrt(dot(n - 1, u + 1, u + 1)); }

/* The pairs at unknowns z; returns their number. */
static int pairs_at(const struct path *path, const double *z, struct cone *cones, double *room)
{
    const struct system *system = path->system;
    double *w_y = take(&room, N_IMPULSES * N_FIRST), *coefficients = take(&room, 2 * N_CONTACTS);
    const struct impulses at = impulses_in(system, &room);
    const struct contact_problem problem = {
        .system = system, .mu = coefficients, .bound = coefficients + N_CONTACTS};
    call_contacts(system, path->x, path->u, z, path->p, at.w, w_y, coefficients);
    memcpy(at.x, z + N_FIRST, sizeof(double) * N_IMPULSES);
    memcpy(at.psi, z + N_FIRST + N_IMPULSES, sizeof(double) * N_SLIPS);
    return cones_of(&problem, &at, cones);
}

/* A step d from z, s that ends inside of all cones, halved until it does; returns the part of it
 * that was taken, or 0. */
static double moved(const struct path *path, const double *d, double *z, double *s, double *room)
{
    const struct system *system = path->system;
    struct cone *cones = (struct cone *)take(&room, DOUBLES(cone, 2 * N_CONTACTS));
    double *there = take(&room, N_Z), part = 1.0;
    (void)system;
    for (int halving = 0; halving < PATH_HALVINGS; ++halving, part /= 2.0) {
        for (int i = 0; i < N_Z; ++i) there[i] = z[i] + part * path->size[i] * d[i];
        const int count = pairs_at(path, there, cones, room);
        int inside = 1;
        for (int i = 0; i < count; ++i)
            inside &= is_in_cone(cones[i].n, cones[i].u) && is_in_cone(cones[i].n, cones[i].v);
        if (!inside) continue;
        memcpy(z, there, sizeof(double) * N_Z);
        *s += part * d[N_Z];
        return part;
    }
    return 0.0;
}

/* Sizes of the impulses: x_n, and the bound of friction. */
static void impulse_sizes(struct path *path)
{
    const struct system *system = path->system;
    double *room = path->room;
    (void)system;
    struct cone *cones = (struct cone *)take(&room, DOUBLES(cone, 2 * N_CONTACTS));
    double largest = 0.0, *size = path->size + N_FIRST;
    const int count = pairs_at(path, path->z, cones, room);
    for (int i = 0; i < count; ++i) {
        const struct block *block = &BLOCKS[cones[i].contact];
        if (cones[i].n == 1) size[block->normal] = cones[i].u[0];
        for (int j = 1; j < cones[i].n; ++j) size[block->tangent + j - 1] = cones[i].u[0];
        largest = fmax(largest, cones[i].u[0]);
    }
    for (int i = 0; i < N_IMPULSES; ++i) size[i] = fmax(size[i], PATH_SMALL * largest);
}

/* d of the bordered equations (S26) at z, s with the last row `row`: of the tangent, else of a
 * correction; 1 where there is none. */
static int path_direction(const struct path *path, const double *z, double s, const double *row,
                          int tangent, double *d, double *room)
{
    const struct system *system = path->system;
    double *p = take(&room, N_P), *r_z = take(&room, N_Z * N_Z);
    double *matrix = take(&room, N_PATH * N_PATH);
    int *pivots = (int *)room;
    smoothed(system, path->p, s, p);
    call_residual(system, path->x, path->u, z, p, d);
    call_jacobian(system, path->x, path->u, z, p, r_z);
    for (int i = 0; i < N_Z; ++i) {
        double *to = matrix + (size_t)N_PATH * i;
        for (int j = 0; j < N_Z; ++j) to[j] = r_z[N_Z * i + j] * path->size[j];
        to[N_Z] = i >= N_FIRST + N_IMPULSES ? -exp(s) : 0.0;
        d[i] = tangent ? 0.0 : -d[i];
    }
    for (int i = 0; i < N_CONTACTS; ++i)
        if (BLOCKS[i].normal >= 0) matrix[N_PATH * (N_FIRST + BLOCKS[i].normal) + N_Z] = -exp(s);
    memcpy(matrix + (size_t)N_PATH * N_Z, row, sizeof(double) * N_PATH);
    d[N_Z] = tangent;
    if (equilibrate(N_PATH, matrix, d) || lu_factor(N_PATH, N_PATH - N_Z + N_RANK, matrix, pivots))
        return 1;
    lu_solve(N_PATH, N_PATH - N_Z + N_RANK, matrix, pivots, d);
    return !all_finite(N_PATH, d);
}

/* Whether there is a tangent here, on from the last. */
static int turn(struct path *path)
{
    const struct system *system = path->system;
    double *room = path->room, *t = take(&room, N_PATH), *ahead = take(&room, N_PATH);
    (void)system;
    impulse_sizes(path); /* in the same room */
    memset(ahead, 0, sizeof(double) * N_PATH);
    if (path_direction(path, path->z, path->s, path->ahead, 1, t, room)) return 0;
    memcpy(ahead + N_FIRST, t + N_FIRST, sizeof(double) * N_IMPULSES);
    ahead[N_Z] = t[N_Z];
    const double length = sqrt(dot(N_PATH, ahead, ahead));
    for (int i = 0; i < N_PATH; ++i) {
        path->tangent[i] = t[i] / length;
        path->ahead[i] = ahead[i] / length;
    }
    return 1;
}

/* Whether a correction d is small beside the sizes of the unknowns z. */
static int is_close(const struct system *system, const double *d, const double *z)
{
    (void)system;
    double y = 0.0, dy = 0.0, far = fabs(d[N_Z]);
    for (int i = 0; i < N_FIRST; ++i) {
        y = fmax(y, fabs(z[i]));
        dy = fmax(dy, fabs(d[i]));
    }
    for (int i = 0; i < N_IMPULSES; ++i) far = fmax(far, fabs(d[N_FIRST + i]));
    return far <= PATH_CLOSE && dy <= PATH_CLOSE * y;
}

/* Corrections of a step of this length, PATH_CORRECTIONS of one that failed; at s = end they keep
 * s. */
static int advance(struct path *path, double length, double end)
{
    const struct system *system = path->system;
    double *room = path->room, *z = take(&room, N_PATH), *row = take(&room, N_PATH);
    double *d = take(&room, N_PATH), s = path->s;
    for (int i = 0; i < N_PATH; ++i) d[i] = length * path->tangent[i];
    memcpy(z, path->z, sizeof(double) * N_Z);
    memcpy(row, path->ahead, sizeof(double) * N_PATH);
    const int whole = moved(path, d, z, &s, room) == 1.0;
    const int at_end = whole && fabs(s - end) <= PATH_LEAST * fabs(length);
    if (at_end) {
        s = end;
        memset(row, 0, sizeof(double) * N_PATH);
        row[N_Z] = 1.0;
    }
    for (int corrections = 0; corrections < PATH_CORRECTIONS; ++corrections) {
        if (path_direction(path, z, s, row, 0, d, room)) break;
        if (moved(path, d, z, &s, room) < 1.0 || !is_close(system, d, z)) continue;
        memcpy(path->z, z, sizeof(double) * N_Z);
        path->s = at_end ? end : s;
        return corrections;
    }
    return PATH_CORRECTIONS;
}

/* Whether Newton's method has led from a guess z (N_Z) to the path at the smoothing of p, by steps
 * `inside` of all cones, or by whole ones. */
static int return_to_path(const struct system *system, const double *x, const double *u,
                          const double *p, int inside, double *z, double *room)
{
    double *at_end = take(&room, N_PATH), *d = take(&room, N_PATH), part = 1.0;
    struct path path = path_from(system, x, u, p, z, room);
    memset(at_end, 0, sizeof(double) * N_PATH);
    at_end[N_Z] = 1.0;
    for (int step = 0; step < PATH_RETURN; ++step) {
        impulse_sizes(&path);
        if (path_direction(&path, path.z, path.s, at_end, 0, d, path.room)) return 0;
        if (inside) part = moved(&path, d, path.z, &path.s, path.room);
        for (int i = 0; i < N_Z && !inside; ++i) path.z[i] += path.size[i] * d[i];
        if (part < 1.0 || !is_close(system, d, path.z)) continue;
        memcpy(z, path.z, sizeof(double) * N_Z);
        return 1;
    }
    return 0;
}

/* Whether the unknowns z (N_Z) have been found along the path, to where Newton's method on all
 * equations converges. r_z: room for (N_Z, N_Z). */
static int follow_path(const struct system *system, const double *x, const double *u,
                       const double *p, double *z, double *r_z, double *room)
{
    double *easier = take(&room, N_P), length = PATH_FIRST;
    const double end = log(p[N_P - 2]), begin = log(PATH_HIGHER * p[N_P - 2]);
    memset(z, 0, sizeof(double) * N_Z);
    smoothed(system, p, begin, easier);
    if (!contact_start(system, x, u, easier, z, r_z, room)) return 0;
    struct path path = path_from(system, x, u, p, z, room);
    path.s = begin;
    path.ahead[N_Z] = -1.0;
    for (int step = 0; step < PATH_STEPS; ++step) {
        /* above its start the path has turned back, and leads to no solution of the step */
        if (length < PATH_LEAST || path.s > begin || !turn(&path)) return 0;
        const double falls = path.ahead[N_Z];
        const int reaches = falls < 0.0 && path.s + length * falls <= end;
        const int corrections = advance(&path, reaches ? (end - path.s) / falls : length, end);
        if (path.s == end) {
            memcpy(z, path.z, sizeof(double) * N_Z);
            return 1;
        }
        if (corrections == PATH_CORRECTIONS) length *= PATH_SHORTER;
        else if (corrections <= PATH_EASY) length = fmin(PATH_LONGEST, PATH_LONGER * length);
    }
    return 0;
}
#endif
