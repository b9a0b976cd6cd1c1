/* The model in a[TREE], and the workspace in a[MEMORY]. */
#include "kernel.h"

#ifdef __SANITIZE_ADDRESS__ /* the sanitizer sees where an array ends, not only the workspace */
#include <sanitizer/asan_interface.h>
enum { GAP = 32 };
#else
enum { GAP = 0 };
#define ASAN_POISON_MEMORY_REGION(start, size) ((void)0)
#endif

/* Vectors lie best where cache lines begin. */
enum { LINE = 64 };

/* Room that is taken piece by piece from `base`; without a base only the size counts. */
struct arena {
    char *base;
    size_t used;
};

INLINE void *take(struct arena *arena, size_t count, size_t size)
{
    void *const piece = arena->base ? arena->base + arena->used : 0;
    arena->used += (count * size + sizeof(double) - 1) / sizeof(double) * sizeof(double) + GAP;
    if (piece) ASAN_POISON_MEMORY_REGION(arena->base + arena->used - GAP, GAP);
    return piece;
}
#define TAKE(arena, pointer, count) ((pointer) = take(arena, count, sizeof *(pointer)))

/* The next piece begins with a cache line. */
INLINE void next_line(struct arena *arena)
{
    const size_t at = (size_t)arena->base + arena->used;
    arena->used += arena->base ? (LINE - at % LINE) % LINE : LINE;
}

/* The model but its functions. */
static struct tree_model model_of(const double *numbers)
{
    const struct tree_header *s = (const struct tree_header *)numbers;
    const char *base = (const char *)numbers;
    return (struct tree_model){
        .n_bodies = s->n_bodies,
        .nq = s->nq,
        .nv = s->nv,
        .n_free = s->n_free,
        .n_forces = s->n_inputs - s->nv + s->n_free,
        .n_constraints = s->n_constraints,
        .n_redundant = s->n_redundant,
        .n_shared = s->n_shared,
        .n_wrenches = s->n_wrenches,
        .planar = s->planar,
        .n_springs = s->n_springs,
        .n_dampers = s->n_dampers,
        .n_impulses = s->n_impulses,
        .n_slips = s->n_slips,
        .n_contact_rates = s->n_contact_rates,
        .n_contacts = s->n_contacts,
        .n_wheel_rows = s->n_wheel_rows,
        .n_rolling = s->n_rolling,
        .n_wheel_rates = s->n_wheel_rates,
        .impulse_room = s->impulse_room,
        .n_multi_dof = s->n_multi_dof,
        .n_parameters = s->n_parameters,
        .n_force_rates = s->n_force_rates,
        .n_rates = s->nv + s->n_mimic,
        .start_fraction = s->start_fraction,
        .energy_at_rest = s->energy_at_rest,
        .gravity = s->gravity,
        .joints = (const struct joint *)(base + s->joints),
        .constraints = (const struct constraint_row *)(base + s->constraints),
        .wrenches = (const struct external_wrench *)(base + s->wrenches),
        .point_forces = (const struct point_force *)(base + s->point_forces),
        .actuated_rates = (const int32_t *)(base + s->actuated_rates),
        .splines = (const double *)(base + s->splines),
        .contact_rates = (const int32_t *)(base + s->contact_rates),
        .wheel_rates = (const int32_t *)(base + s->wheel_rates),
    };
}

/* The arrays of constraints. */
INLINE void take_constraints(struct arena *arena, const struct tree_model *model,
                             struct tree_data *d)
{
    const size_t m = model->n_constraints, rows = n_multipliers(model) * (size_t)model->nv;
    const size_t count = n_multipliers(model) + model->n_slips;
    if (!rows) return;
    TAKE(arena, d->poses, model->n_bodies);
    TAKE(arena, d->motions, model->n_rates);
    TAKE(arena, d->joint_poses, model->n_multi_dof);
    TAKE(arena, d->constraint_values, n_closures(model));
    TAKE(arena, d->q1, model->nq);
    TAKE(arena, d->G0, rows);
    TAKE(arena, d->G0_size, rows);
    TAKE(arena, d->G1, rows);
    TAKE(arena, d->Y, rows);
    TAKE(arena, d->dz_by_lambda, rows);
    TAKE(arena, d->ab_by_lambda, 2 * rows);
    TAKE(arena, d->schur, count * count);
    TAKE(arena, d->schur_size, m * m);
    TAKE(arena, d->h0_size, m);
    TAKE(arena, d->schur_pivots, 2 * count);
    TAKE(arena, d->projection, m);
    TAKE(arena, d->constraint_columns, model->nv);
    TAKE(arena, d->multiplier_rows, count);
    TAKE(arena, d->all_ab, 2 * (size_t)model->nv * n_variables(model));
    TAKE(arena, d->all_dz, (model->n_free + count) * n_variables(model));
}

/* The arrays of wheels. */
INLINE void take_wheels(struct arena *arena, const struct tree_model *model, struct tree_data *d)
{
    const size_t rows = model->n_wheel_rows, nv = model->nv, n = n_variables(model),
                 free = model->n_free, reduced = free - model->n_rolling,
                 unknowns = free + n_multipliers(model) + model->n_slips;
    if (!rows) return;
    TAKE(arena, d->wheel_values, rows);
    TAKE(arena, d->wheel_by_z, rows * model->n_wheel_rates);
    TAKE(arena, d->wheel_sizes, rows);
    TAKE(arena, d->wheel_by_s, rows * n);
    TAKE(arena, d->wheel_hessian, nv * nv);
    TAKE(arena, d->step_parameters, model->n_parameters);
    if (!model->n_rolling) return;
    TAKE(arena, d->unknowns, unknowns);
    TAKE(arena, d->momentum, nv);
    TAKE(arena, d->basis, free * reduced);
    TAKE(arena, d->dual, free * reduced);
    TAKE(arena, d->basis_by_q, reduced * nv);
    TAKE(arena, d->basis_product, free * nv);
    TAKE(arena, d->end_state, model->nq + nv);
}

/* The arrays of contacts. */
INLINE void take_contacts(struct arena *arena, const struct tree_model *model, struct tree_data *d)
{
    const size_t k = model->n_impulses, nv = model->nv, rates = model->n_contact_rates,
                 own = k + model->n_slips, first = model->n_free + model->n_constraints;
    if (!k) return;
    TAKE(arena, d->impulse_response, k * (nv + model->n_constraints));
    TAKE(arena, d->w, k);
    TAKE(arena, d->w_y, k * rates);
    TAKE(arena, d->friction, 2 * (size_t)model->n_contacts);
    TAKE(arena, d->contact_G, k * k + LANES);
    TAKE(arena, d->contact_b, k);
    TAKE(arena, d->impulses, 2 * k + model->n_slips + 2);
    TAKE(arena, d->impulse_hessian, nv * nv);
    TAKE(arena, d->impulse_room, model->impulse_room);
    TAKE(arena, d->impulse_change, k);
    TAKE(arena, d->near_rows, k * nv);
    TAKE(arena, d->near_friction, 2 * (size_t)model->n_contacts);
    TAKE(arena, d->far, own);
    TAKE(arena, d->last_far, own);
    TAKE(arena, d->opening, k);
    struct contact_set near, *set;
    double *part;
    TAKE(arena, near.near, model->n_contacts);
    TAKE(arena, near.contacts, model->n_contacts);
    TAKE(arena, near.slips, model->n_slips);
    TAKE(arena, near.impulses, k);
    TAKE(arena, part, PART_ROOM(model->n_contacts));
    near.part = (struct system *)part;
    TAKE(arena, set, 1);
    d->near = set;
    if (arena->base) *set = near;
    TAKE(arena, d->rate_response, rates * (k + LANES));
    TAKE(arena, d->rate_change, rates);
    TAKE(arena, d->free_right, first);
    TAKE(arena, d->free_column, first);
    TAKE(arena, d->guess, first);
    TAKE(arena, d->free_inverse, first * first);
    TAKE(arena, d->free_pivots, first);
    TAKE(arena, d->by_impulses, own * own);
    TAKE(arena, d->by_velocities, own * k);
    TAKE(arena, d->w_x, k * (size_t)n_multipliers(model));
    TAKE(arena, d->w_s, k * (size_t)(n_variables(model) + model->n_parameters));
}

/* The arrays of coordinates that joints share. */
INLINE void take_mimic_joints(struct arena *arena, const struct tree_model *model,
                              struct tree_data *d)
{
    const size_t n = model->n_shared, all = model->n_rates;
    if (!n) return;
    TAKE(arena, d->Y_shared, n * all);
    TAKE(arena, d->dz_by_shared, n * all);
    TAKE(arena, d->ab_by_shared, 2 * n * all);
    TAKE(arena, d->shared_matrix, n * n);
    TAKE(arena, d->shared_row, all);
    TAKE(arena, d->shared_right, all);
    TAKE(arena, d->shared_rates, n);
    TAKE(arena, d->shared_pivots, n);
    if (!arena->base) return;
    for (int i = 0, a = 0; i < model->n_bodies; ++i)
        if (model->joints[i].mode == SHARED) d->shared_rates[a++] = model->joints[i].v_index;
}

/* The arrays of springs and dampers between points. */
INLINE void take_point_forces(struct arena *arena, const struct tree_model *model,
                              struct tree_data *d)
{
    const size_t rows = 3 * (model->n_springs + model->n_dampers), all = model->n_rates;
    if (!rows) return;
    TAKE(arena, d->force_rows, rows * all);
    TAKE(arena, d->force_rows1, rows * all);
    TAKE(arena, d->force_by_z, rows * all);
    TAKE(arena, d->force_by_q, rows * all);
    TAKE(arena, d->force_response, rows * all);
    TAKE(arena, d->force_matrix, rows * rows);
    TAKE(arena, d->force_pivots, rows);
    TAKE(arena, d->force_change, rows);
    TAKE(arena, d->damper_rows, 9 * (size_t)model->nv);
}

/* The arrays of forces in the derivatives. */
INLINE void take_force_columns(struct arena *arena, const struct tree_model *model,
                               struct tree_data *d)
{
    const size_t forces = model->n_force_rates, springs = 3 * (size_t)model->n_springs,
                 columns =
                     (size_t)(n_variables(model) + model->n_parameters + n_multipliers(model)),
                 n = model->nv + springs;
    if (!forces && !springs) return;
    TAKE(arena, d->force_scratch, forces * (3 * forces + columns) + springs * columns);
    TAKE(arena, d->force_part, forces + springs);
    TAKE(arena, d->supporting, model->n_rates);
    TAKE(arena, d->identity, n);
    TAKE(arena, d->rate_places, model->nv);
    TAKE(arena, d->supporting_rates, forces);
    TAKE(arena, d->rate_order, forces);
    for (size_t i = 0; arena->base && i < n; ++i) d->identity[i] = (int)i;
}

/* All arrays, with room for derivatives by the parameters. */
INLINE void take_all(struct arena *arena, const struct tree_model *model, struct tree_data *d)
{
    const size_t n = model->n_bodies, all = model->n_rates, unknowns = all + model->n_constraints;
    TAKE(arena, d->r, unknowns);
    TAKE(arena, d->r_size, unknowns);
    TAKE(arena, d->known_size, unknowns);
    TAKE(arena, d->joint_force, unknowns);
    TAKE(arena, d->dL_dq, unknowns);
    TAKE(arena, d->dL_dv, unknowns);
    TAKE(arena, d->z, unknowns + model->n_impulses + model->n_slips);
    TAKE(arena, d->trial, unknowns);
    TAKE(arena, d->dz, unknowns);
    TAKE(arena, d->start, unknowns);
    TAKE(arena, d->larger, unknowns);
    TAKE(arena, d->after, unknowns);
    TAKE(arena, d->reached, unknowns);
    TAKE(arena, d->wrench_force, unknowns);
    next_line(arena);
    TAKE(arena, d->bodies, n);
    TAKE(arena, d->rows, all);
    TAKE(arena, d->multi_dof, model->n_multi_dof);
    take_constraints(arena, model, d);
    take_wheels(arena, model, d);
    take_contacts(arena, model, d);
    take_mimic_joints(arena, model, d);
    take_point_forces(arena, model, d);
    take_force_columns(arena, model, d);
    TAKE(arena, d->body_of, all);
    next_line(arena);
    TAKE(arena, d->simd_columns, 28 * n + 3 * all + n / sizeof(vn) + 1); /* with n states */
    TAKE(arena, d->seeds, model->nv);
    TAKE(arena, d->solved_columns,
         n_multipliers(model) + model->n_slips + model->n_shared + 3 * model->n_springs +
             model->n_force_rates);
}

/* Doubles that a[MEMORY] must have for a model. */
long long tree_data_size(const double *numbers)
{
    const struct tree_model model = model_of(numbers);
    struct arena arena = {0, 0};
    struct tree_data data;
    take_all(&arena, &model, &data);
    return (long long)(arena.used / sizeof(double) + 1);
}

/* The model and the workspace of a list of arrays. */
INTERNAL struct tree tree_of(double *const *a)
{
    struct tree tree = {.model = model_of(a[TREE])};
    struct tree_data *d = &tree.data;
    const struct tree_functions *functions = (const struct tree_functions *)a[SYSTEM];
    tree.model.joint_functions = functions->joints;
    tree.model.contact_functions = functions->contacts;
    tree.model.wheel_functions = functions->wheels;
    struct arena arena = {(char *)a[MEMORY], 0};
    d->h = d->prescribed_time = a[P][tree.model.n_parameters - 1];
    d->half_step = 0.5 * d->h;
    d->q = a[X];
    d->rho = d->q + tree.model.nq;
    d->u = a[U];
    d->p = a[P];
    take_all(&arena, &tree.model, d);
    return tree;
}

/* The same at the start of a step. */
INTERNAL struct tree tree_at(double *const *a)
{
    const struct tree tree = tree_of(a);
    start_turns(&tree.model, &tree.data);
    return tree;
}
