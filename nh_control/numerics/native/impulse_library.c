/* Impulses of contacts, and the path to them, for steps that are not of generated functions.
 *
 * Equations (S...): doc/theory/native_steps.md. */
#include "free_step.h"

#include "contact_path.h"

_Static_assert(sizeof(struct system) <= 32 * sizeof(double), "part");
_Static_assert(sizeof(struct block) == 2 * sizeof(double), "blocks of a part");

/* Numbers of room that the equations of a step with its contacts take. */
#define EQUATIONS_ROOM(n_tangents, n_rates)                                                       \
    (N_IMPULSES + N_IMPULSES * (n_rates) + 2 * N_CONTACTS + N_IMPULSES * (n_tangents) +           \
     N_IMPULSES * N_FIRST + N_FIRST + N_FIRST * N_FIRST +                                         \
     (N_IMPULSES + N_SLIPS) * (2 * N_IMPULSES + N_SLIPS))

/* Numbers of room of a step, those of its equations behind those of its path. */
#define IMPULSES_PATH_ROOM (N_Z * N_Z + 2 * N_PATH + N_P + START_ROOM + PATH_ROOM)

/* Stored impulses: x (N_IMPULSES), w (N_IMPULSES), psi (N_SLIPS + 1), and whether they
 * are known. */
static struct impulses kept_impulses(const struct system *system, double *kept)
{
    double *psi = kept + 2 * N_IMPULSES;
    return (struct impulses){kept, kept + N_IMPULSES, psi, (enum guess)psi[N_SLIPS + 1]};
}

/* The rows of contact i: the first one, and their number. */
static int first_row(const struct system *system, int i)
{
    return BLOCKS[i].normal >= 0 ? BLOCKS[i].normal : BLOCKS[i].tangent;
}
static int n_rows(const struct system *system, int i)
{
    return (BLOCKS[i].normal >= 0) + BLOCKS[i].k;
}

/* The contacts of a set that are `near` become its problem. */
static void select_near(const struct system *system, struct contact_set *set)
{
    struct system *part = set->part;
    struct block *blocks = (struct block *)(part + 1);
    int rows = 0, slips = 0, count = 0;
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int k = BLOCKS[i].k, has_normal = BLOCKS[i].normal >= 0;
        if (!set->near[i]) continue;
        blocks[count] =
            (struct block){has_normal ? rows : -1, rows + has_normal, k, k ? slips : -1};
        set->contacts[count++] = i;
        for (int j = 0; j < n_rows(system, i); ++j)
            set->impulses[rows++] = first_row(system, i) + j;
        if (k) set->slips[slips++] = BLOCKS[i].psi;
    }
    *part = *system;
    part->blocks = blocks;
    part->n_impulses = set->n_impulses = rows;
    part->n_slips = set->n_slips = slips;
    part->n_contacts = set->n_contacts = count;
}

/* Whether impulses of contact i change velocities of contact j. */
static int acts_on(const struct system *system, const double *G, int i, int j)
{
    const double *block = G + (size_t)N_IMPULSES * first_row(system, j) + first_row(system, i);
    for (int r = 0; r < n_rows(system, j); ++r)
        for (int c = 0; c < n_rows(system, i); ++c)
            if (block[N_IMPULSES * r + c] != 0.0) return 1;
    return 0;
}

/* Islands are sets of contacts that act on no others, such as those of separate bodies. `island`
 * (N_CONTACTS) becomes the first contact of each contact's island; returns their number. */
static int find_islands(const struct system *system, const double *G, int *island)
{
    int count = N_CONTACTS;
    for (int i = 0; i < N_CONTACTS; ++i) island[i] = i;
    for (int i = 0; i < N_CONTACTS && count > 1; ++i)
        for (int j = i + 1; j < N_CONTACTS && count > 1; ++j) {
            const int a = island[i], b = island[j];
            if (a == b || !(acts_on(system, G, i, j) || acts_on(system, G, j, i))) continue;
            for (int k = 0; k < N_CONTACTS; ++k)
                if (island[k] == a || island[k] == b) island[k] = a < b ? a : b;
            --count;
        }
    return count;
}

/* Numbers of room of islands and of the problem of one of them. */
#define ISLAND_ROOM                                                                               \
    (3 * N_CONTACTS + N_IMPULSES + N_SLIPS + PART_ROOM(N_CONTACTS) + IMPULSES_ROOM + N_IMPULSES + \
     2 * N_CONTACTS + N_IMPULSES * N_IMPULSES + PROBLEM_ROOM)

/* A routine that solves a problem from impulses; 0 where it does not. */
typedef int solver(const struct contact_problem *problem, struct impulses *at);

/* Solves the problem of the contacts of a set, which act on no others. */
static int solve_part(const struct system *system, const struct contact_set *set, const double *G,
                      const double *b, const double *coefficients, double kappa, solver *solve,
                      struct impulses *at, double *room)
{
    const int k = set->n_impulses, count = set->n_contacts, *rows = set->impulses;
    double *part_G = take(&room, (size_t)k * k), *part_b = take(&room, k);
    double *part_coefficients = take(&room, 2 * count);
    struct impulses part = impulses_in(set->part, &room);
    part.known = at->known;
    for (int r = 0; r < k; ++r) {
        const double *row = G + (size_t)N_IMPULSES * rows[r];
        for (int c = 0; c < k; ++c) part_G[k * r + c] = row[rows[c]];
        part_b[r] = b[rows[r]];
        part.x[r] = at->x[rows[r]];
        part.w[r] = at->w[rows[r]];
    }
    for (int i = 0; i < set->n_slips; ++i) part.psi[i] = at->psi[set->slips[i]];
    for (int i = 0; i < count; ++i) {
        part_coefficients[i] = coefficients[set->contacts[i]];
        part_coefficients[count + i] = coefficients[N_CONTACTS + set->contacts[i]];
    }
    const struct contact_problem problem =
        problem_of(set->part, part_G, part_b, part_coefficients, kappa, room);
    if (!solve(&problem, &part)) return 0;
    for (int r = 0; r < k; ++r) {
        at->x[rows[r]] = part.x[r];
        at->w[rows[r]] = part.w[r];
    }
    for (int i = 0; i < set->n_slips; ++i) at->psi[set->slips[i]] = part.psi[i];
    return 1;
}

/* Solves w = G x + b with friction and bounds (2, N_CONTACTS), island by island, from impulses,
 * which become UNKNOWN where one has no solution. */
static int solve_islands(const struct system *system, const double *G, const double *b,
                         const double *coefficients, double kappa, solver *solve,
                         struct impulses *at, double *room)
{
    int *island = (int *)take(&room, N_CONTACTS);
    if (find_islands(system, G, island) == 1) {
        const struct contact_problem problem = problem_of(system, G, b, coefficients, kappa, room);
        return solve(&problem, at);
    }
    struct contact_set set = {.near = (int *)take(&room, N_CONTACTS),
                              .impulses = (int *)take(&room, N_IMPULSES),
                              .slips = (int *)take(&room, N_SLIPS),
                              .contacts = (int *)take(&room, N_CONTACTS),
                              .part = (struct system *)take(&room, PART_ROOM(N_CONTACTS))};
    int is_solved = 1;
    for (int first = 0; first < N_CONTACTS && is_solved; ++first) {
        if (island[first] != first) continue;
        for (int i = 0; i < N_CONTACTS; ++i) set.near[i] = island[i] == first;
        select_near(system, &set);
        is_solved = solve_part(system, &set, G, b, coefficients, kappa, solve, at, room);
    }
    at->known = is_solved ? LAST_IMPULSES : UNKNOWN;
    return is_solved;
}

/* Solves w = G x + b with friction and bounds (2, N_CONTACTS), from the impulses `kept` where they
 * are known; 1 where no solution was found. */
int nh_find_impulses(const struct system *system, const double *G, const double *b,
                     const double *coefficients, double kappa, double *kept, double *room)
{
    struct impulses at = kept_impulses(system, kept);
    const int failed =
        !solve_islands(system, G, b, coefficients, kappa, find_impulses, &at, room);
    at.psi[N_SLIPS + 1] = at.known;
    return failed;
}

/* Refines a solution to round-off; 1 where it does not converge. */
int nh_settle_impulses(const struct system *system, const double *G, const double *b,
                       const double *coefficients, double kappa, double *kept, double *room)
{
    struct impulses at = kept_impulses(system, kept);
    return !solve_islands(system, G, b, coefficients, kappa, settle_impulses, &at, room);
}

/* Numbers of room of the path or of the islands, which are never in use together. */
long long nh_impulse_room(const struct system *system, int n_tangents, int n_rates)
{
    const size_t path = IMPULSES_PATH_ROOM + EQUATIONS_ROOM(n_tangents, n_rates);
    return (long long)(path > ISLAND_ROOM ? path : ISLAND_ROOM);
}

/* Whether a solution lies on the central path, as `is_inside`. */
int nh_is_inside(const struct system *system, const double *z) { return is_inside(system, z); }

/* Contacts join a set that open by less than `speed` (m/s), and those without a normal or without
 * friction to divide by; returns whether there are any new ones. */
int nh_add_near(const struct system *system, const double *w, const double *coefficients,
                double speed, struct contact_set *set)
{
    int added = 0;
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal;
        const int is_far = n >= 0 && w[n] >= speed && (!BLOCKS[i].k || coefficients[i] > 0.0);
        added |= !is_far && !set->near[i];
        set->near[i] |= !is_far;
    }
    select_near(system, set);
    return added;
}

/* Normal impulses x (N_IMPULSES) that hold gaps open by velocities w; 0 where one is closed. */
int nh_gap_impulses(const struct system *system, const double *w, double kappa, double *x)
{
    memset(x, 0, sizeof(double) * N_IMPULSES);
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal;
        if (n >= 0 && !(w[n] > 0.0)) return 0;
        if (n >= 0) x[n] = kappa / w[n];
    }
    return 1;
}

/* Impulses x (N_IMPULSES) and slip bounds psi (N_SLIPS) of contacts that are not near, which solve
 * (S18) at their velocities w (S24). */
void nh_far_impulses(const struct system *system, const int *near, const double *w,
                     const double *coefficients, double kappa, double *x, double *psi)
{
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal, t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        if (near[i]) continue;
        x[n] = kappa / w[n];
        if (!k) continue;
        const double half = 0.5 * w[n] / coefficients[i];
        const double bound = half + sqrt(half * half + dot(k, w + t, w + t));
        for (int j = t; j < t + k; ++j) x[j] = -coefficients[i] * x[n] * w[j] / bound;
        psi[BLOCKS[i].psi] = bound;
    }
}

/* Derivatives of the rows of (S18), in the order of (x, psi), at x with psi behind it: by these
 * unknowns (n, n) and by w (n, N_IMPULSES), n = N_IMPULSES + N_SLIPS. */
void nh_impulse_equations(const struct system *system, const double *x, const double *w,
                          const double *coefficients, double *by_unknown, double *by_w)
{
    const int ALL = N_IMPULSES + N_SLIPS;
    memset(by_unknown, 0, sizeof(double) * ALL * ALL);
    memset(by_w, 0, sizeof(double) * ALL * N_IMPULSES);
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal, t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        const int last = N_IMPULSES + BLOCKS[i].psi;
        if (n >= 0) { /* x_n w_n = kappa */
            by_unknown[ALL * n + n] = w[n];
            by_w[N_IMPULSES * n + n] = x[n];
        }
        if (!k) continue;
        const double psi = x[last], mu = coefficients[i];
        const double beta = n >= 0 ? mu * x[n] : coefficients[N_CONTACTS + i];
        for (int j = t; j < t + k; ++j) { /* beta s + psi g = 0 */
            by_unknown[ALL * j + j] = psi;
            by_unknown[ALL * j + last] = x[j];
            if (n >= 0) by_unknown[ALL * j + n] = mu * w[j];
            by_w[N_IMPULSES * j + j] = beta;
            by_unknown[ALL * last + j] = w[j];
            by_w[N_IMPULSES * last + j] = x[j];
        }
        by_unknown[ALL * last + last] = beta; /* beta psi + g . s = kappa */
        if (n >= 0) by_unknown[ALL * last + n] = mu * psi;
    }
}

/* The rows of (S18), in the order of (x, psi). */
static void impulse_rows(const struct system *system, const double *x, const double *w,
                         const double *coefficients, double kappa, double *r)
{
    for (int i = 0; i < N_CONTACTS; ++i) {
        const int n = BLOCKS[i].normal, t = BLOCKS[i].tangent, k = BLOCKS[i].k;
        const int last = N_IMPULSES + BLOCKS[i].psi;
        if (n >= 0) r[n] = x[n] * w[n] - kappa;
        if (!k) continue;
        const double beta = n >= 0 ? coefficients[i] * x[n] : coefficients[N_CONTACTS + i];
        for (int j = t; j < t + k; ++j) r[j] = beta * w[j] + x[last] * x[j];
        r[last] = beta * x[last] + dot(k, x + t, w + t) - kappa;
    }
}

/* Velocities w at the contacts, w by the first unknowns (N_IMPULSES, N_FIRST), and the
 * coefficients of friction and bounds. */
static void velocities_at(const struct free_step *step, const double *const *in, double *w,
                          double *w_y, double *coefficients, double *room)
{
    const struct system *system = step->contacts->sizes;
    double *by_rates = take(&room, N_IMPULSES * step->n_rates);
    call_at(&step->contacts->values, in[0], in[1], in[2], in[3], w, by_rates, coefficients);
    memset(w_y, 0, sizeof(double) * N_IMPULSES * N_FIRST);
    for (int i = 0; i < N_IMPULSES; ++i)
        for (int k = 0; k < step->n_rates; ++k)
            w_y[N_FIRST * i + step->rates[k]] = by_rates[step->n_rates * i + k];
}

/* The room of the equations. */
static double *equations_room(const struct free_step *step)
{
    const struct system *system = step->contacts->sizes;
    return step->room + IMPULSES_PATH_ROOM;
}

/* `contacts` of follow_path. */
static int step_contacts(const void *self, const double *const *in, double *const *out)
{
    const struct free_step *step = self;
    velocities_at(step, in, out[0], out[1], out[2], equations_room(step));
    return 0;
}

/* `residual` of follow_path: the rows of the step (N_Z), those of the tree with the impulses and
 * (S18). */
static int residual_in_contact(const void *self, const double *const *in, double *const *out)
{
    const struct free_step *step = self;
    const struct system *system = step->contacts->sizes;
    const double *z = in[2];
    double *r = out[0], *room = equations_room(step);
    double *w = take(&room, N_IMPULSES), *w_y = take(&room, N_IMPULSES * N_FIRST);
    double *coefficients = take(&room, 2 * N_CONTACTS);
    double *J = take(&room, N_IMPULSES * step->n_tangents);
    step->equations(step->tree, z, r, 0);
    call_at(&step->contacts->rows, in[0], in[1], z, in[3], J, 0, 0);
    for (int i = 0; i < step->n_free; ++i)
        for (int k = 0; k < N_IMPULSES; ++k) r[i] += J[step->n_tangents * k + i] * z[N_FIRST + k];
    velocities_at(step, in, w, w_y, coefficients, room);
    impulse_rows(system, z + N_FIRST, w, coefficients, in[3][N_P - 2], r + N_FIRST);
    return 0;
}

/* `jacobian` of follow_path: the derivatives of these rows by the unknowns (N_Z, N_Z). */
static int jacobian_in_contact(const void *self, const double *const *in, double *const *out)
{
    const struct free_step *step = self;
    const struct system *system = step->contacts->sizes;
    const double *z = in[2];
    const int all = N_IMPULSES + N_SLIPS;
    double *r_z = out[0], *room = equations_room(step);
    double *w = take(&room, N_IMPULSES), *w_y = take(&room, N_IMPULSES * N_FIRST);
    double *coefficients = take(&room, 2 * N_CONTACTS), *r = take(&room, N_FIRST);
    double *J = take(&room, N_IMPULSES * step->n_tangents), *r_y = take(&room, N_FIRST * N_FIRST);
    double *by_unknown = take(&room, all * all), *by_w = take(&room, all * N_IMPULSES);
    memset(r_z, 0, sizeof(double) * N_Z * N_Z);
    step->equations(step->tree, z, r, r_y);
    call_at(&step->contacts->rows, in[0], in[1], z, in[3], J, 0, 0);
    velocities_at(step, in, w, w_y, coefficients, room);
    nh_impulse_equations(system, z + N_FIRST, w, coefficients, by_unknown, by_w);
    for (int i = 0; i < N_FIRST; ++i) {
        memcpy(r_z + (size_t)N_Z * i, r_y + (size_t)N_FIRST * i, sizeof(double) * N_FIRST);
        for (int k = 0; k < N_IMPULSES && i < step->n_free; ++k)
            r_z[(size_t)N_Z * i + N_FIRST + k] = J[step->n_tangents * k + i];
    }
    for (int i = 0; i < all; ++i) {
        double *row = r_z + (size_t)N_Z * (N_FIRST + i);
        memcpy(row + N_FIRST, by_unknown + all * i, sizeof(double) * all);
        for (int k = 0; k < N_IMPULSES; ++k)
            for (int y = 0; y < N_FIRST; ++y)
                row[y] += by_w[N_IMPULSES * i + k] * w_y[N_FIRST * k + y];
    }
    return 0;
}

/* Follows the central path of a step to the unknowns z (N_Z), close to a solution, or returns to
 * it from those of a `guess`; 1 where it does not lead there. */
int nh_follow_path(const struct free_step *step, const double *x, const double *u, const double *p,
                   int guess, double *z)
{
    struct system whole = *step->contacts->sizes;
    const struct system *system = &whole;
    double *room = step->room, *r_z = take(&room, N_Z * N_Z);
    whole.residual = (struct function){residual_in_contact, step};
    whole.jacobian = (struct function){jacobian_in_contact, step};
    whole.contacts = (struct function){step_contacts, step};
    if (!guess) return !follow_path(system, x, u, p, z, r_z, room);
    return !(return_to_path(system, x, u, p, 1, z, room) ||
             return_to_path(system, x, u, p, 0, z, room));
}
