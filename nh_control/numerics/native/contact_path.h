#ifndef NH_CONTACT_PATH_H
#define NH_CONTACT_PATH_H
/* The central path of a step with contacts, followed by its length from a large kappa to its own:
 * the twin of discrete/contact_path.py.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "contact_step.h"

/* Unknowns of the path: (y, x / size, psi, s), s = log(kappa). */
#define N_PATH (N_Z + 1)

struct path {
    const double *x, *u, *p;
    double z[N_Z], s;       /* a place on the path */
    double size[N_Z];       /* of the unknowns: that of impulses, 1 of others */
    double tangent[N_PATH]; /* of (y, x / size, psi, s) */
    double ahead[N_PATH];   /* the part of it in (x / size, s) */
};

/* p (N_P) with the smoothing exp(s). */
static void smoothed(const double *p, double s, double *out)
{
    memcpy(out, p, sizeof(double) * N_P);
    out[N_P - 2] = exp(s);
}

static int is_in_cone(int n, const double *u) { return u[0] > sqrt(dot(n - 1, u + 1, u + 1)); }

/* The pairs at unknowns z; returns their number. */
static int pairs_at(const struct path *path, const double *z, struct cone *cones)
{
    double w_y[N_IMPULSES * N_FIRST], coefficients[2 * N_CONTACTS];
    struct impulses at;
    const struct contact_problem problem = {.mu = coefficients,
                                            .bound = coefficients + N_CONTACTS};
    call_contacts(path->x, path->u, z, path->p, at.w, w_y, coefficients);
    memcpy(at.x, z + N_FIRST, sizeof at.x);
    memcpy(at.psi, z + N_FIRST + N_IMPULSES, sizeof(double) * N_SLIPS);
    return cones_of(&problem, &at, cones);
}

/* A step d from z, s that ends inside of all cones, halved until it does; returns the part of it
 * that was gone, 0 of none. */
static double moved(const struct path *path, const double *d, double *z, double *s)
{
    struct cone cones[2 * N_CONTACTS];
    double part = 1.0, there[N_Z];
    for (int halving = 0; halving < PATH_HALVINGS; ++halving, part /= 2.0) {
        for (int i = 0; i < N_Z; ++i) there[i] = z[i] + part * path->size[i] * d[i];
        const int count = pairs_at(path, there, cones);
        int inside = 1;
        for (int i = 0; i < count; ++i)
            inside &= is_in_cone(cones[i].n, cones[i].u) && is_in_cone(cones[i].n, cones[i].v);
        if (!inside) continue;
        memcpy(z, there, sizeof there);
        *s += part * d[N_Z];
        return part;
    }
    return 0.0;
}

/* Sizes of the impulses: x_n, and the bound of friction. */
static void impulse_sizes(struct path *path)
{
    struct cone cones[2 * N_CONTACTS];
    double largest = 0.0, *size = path->size + N_FIRST;
    const int count = pairs_at(path, path->z, cones);
    for (int i = 0; i < count; ++i) {
        const struct block *block = &BLOCKS[cones[i].contact];
        if (cones[i].n == 1) size[block->normal] = cones[i].u[0];
        for (int j = 1; j < cones[i].n; ++j) size[block->tangent + j - 1] = cones[i].u[0];
        largest = fmax(largest, cones[i].u[0]);
    }
    for (int i = 0; i < N_IMPULSES; ++i) size[i] = fmax(size[i], PATH_SMALL * largest);
}

/* d of the bordered equations (S25) at z, s with the last row `row`: of the tangent, else of a
 * correction; 1 where there is none. */
static int path_direction(const struct path *path, const double *z, double s, const double *row,
                          int tangent, double *d)
{
    double p[N_P], r_z[N_Z * N_Z], matrix[N_PATH * N_PATH];
    int pivots[N_PATH];
    smoothed(path->p, s, p);
    call_residual(path->x, path->u, z, p, d);
    call_jacobian(path->x, path->u, z, p, r_z);
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
    if (equilibrate(N_PATH, matrix, d) || lu_factor(N_PATH, matrix, pivots)) return 1;
    lu_solve(N_PATH, matrix, pivots, d);
    return !all_finite(N_PATH, d);
}

/* Whether there is a tangent here, on from the last. */
static int turn(struct path *path)
{
    double t[N_PATH], ahead[N_PATH] = {0.0};
    impulse_sizes(path);
    if (path_direction(path, path->z, path->s, path->ahead, 1, t)) return 0;
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
static int is_close(const double *d, const double *z)
{
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
    double z[N_Z], s = path->s, row[N_PATH], d[N_PATH];
    for (int i = 0; i < N_PATH; ++i) d[i] = length * path->tangent[i];
    memcpy(z, path->z, sizeof z);
    memcpy(row, path->ahead, sizeof row);
    const int whole = moved(path, d, z, &s) == 1.0;
    const int at_end = whole && fabs(s - end) <= PATH_LEAST * fabs(length);
    if (at_end) {
        s = end;
        memset(row, 0, sizeof row);
        row[N_Z] = 1.0;
    }
    for (int corrections = 0; corrections < PATH_CORRECTIONS; ++corrections) {
        if (path_direction(path, z, s, row, 0, d)) break;
        if (moved(path, d, z, &s) < 1.0 || !is_close(d, z)) continue;
        memcpy(path->z, z, sizeof z);
        path->s = at_end ? end : s;
        return corrections;
    }
    return PATH_CORRECTIONS;
}

/* Whether Newton's method has led from a guess z (N_Z) to the path at the smoothing of p, by steps
 * `inside` of all cones, or by whole ones. */
static int return_to_path(const double *x, const double *u, const double *p, int inside, double *z)
{
    struct path path = {x, u, p, .s = log(p[N_P - 2])};
    const double at_end[N_PATH] = {[N_Z] = 1.0};
    double d[N_PATH], part = 1.0;
    memcpy(path.z, z, sizeof path.z);
    for (int i = 0; i < N_Z; ++i) path.size[i] = 1.0;
    for (int step = 0; step < PATH_RETURN; ++step) {
        impulse_sizes(&path);
        if (path_direction(&path, path.z, path.s, at_end, 0, d)) return 0;
        if (inside) part = moved(&path, d, path.z, &path.s);
        for (int i = 0; i < N_Z && !inside; ++i) path.z[i] += path.size[i] * d[i];
        if (part < 1.0 || !is_close(d, path.z)) continue;
        memcpy(z, path.z, sizeof path.z);
        return 1;
    }
    return 0;
}

/* Whether the unknowns z (N_Z) have been found along the path, to where Newton's method on all
 * equations converges. r_z: room for (N_Z, N_Z). */
static int follow_path(const double *x, const double *u, const double *p, double *z, double *r_z)
{
    struct path path = {x, u, p, .s = log(PATH_HIGHER * p[N_P - 2]), .ahead[N_Z] = -1.0};
    const double begin = path.s, end = log(p[N_P - 2]);
    double easier[N_P], length = PATH_FIRST;
    memset(z, 0, sizeof path.z);
    smoothed(p, path.s, easier);
    if (!contact_start(x, u, easier, z, r_z)) return 0;
    memcpy(path.z, z, sizeof path.z);
    for (int i = 0; i < N_Z; ++i) path.size[i] = 1.0;
    for (int step = 0; step < PATH_STEPS; ++step) {
        /* above its begin the path has turned back, to where no solution of the step is */
        if (length < PATH_LEAST || path.s > begin || !turn(&path)) return 0;
        const double falls = path.ahead[N_Z];
        const int reaches = falls < 0.0 && path.s + length * falls <= end;
        const int corrections = advance(&path, reaches ? (end - path.s) / falls : length, end);
        if (path.s == end) {
            memcpy(z, path.z, sizeof path.z);
            return 1;
        }
        if (corrections == PATH_CORRECTIONS) length *= PATH_SHORTER;
        else if (corrections <= PATH_EASY) length = fmin(PATH_LONGEST, PATH_LONGER * length);
    }
    return 0;
}
#endif
