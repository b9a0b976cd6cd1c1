/* A step of a tree by Newton's iteration (newton.h). Bounds of the rows' terms come from norms of
 * the wrenches that they add up, which also takes time linear in the bodies.
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"
#include "newton.h"

static const double LEAST_GROWTH = 0.005;
/* How factors of the mass matrix shrink the error of robots at h = 1 ms (measured). */
static const double USUAL_RATE = 5e-4;

/* Newton's equation of a tree. `measures`: whether the first correction gives the rows' sizes,
 * `sized`: whether the last residual came with them; turns: the largest angle. */
struct tree_equation {
    const struct tree_model *model;
    const struct tree_data *data;
    double turns;
    int measures, sized;
};

/* The larger number, b where a is NaN. */
INLINE double larger_of(double a, double b) { return a > b ? a : b; }

INLINE void tree_residual(const struct newton *it, int iteration, const double *z)
{
    struct tree_equation *tree = it->equation;
    tree->sized = tree->measures && !iteration;
    kkt_residual(tree->model, tree->data, z, tree->sized ? tree->turns : 0.0);
}

/* A rejected trial needs the sizes of its rows. */
INLINE void tree_jacobian(const struct newton *it, enum newton_cause cause, const double *z)
{
    struct tree_equation *tree = it->equation;
    if (cause == SLOW || tree->sized) return;
    kkt_residual(tree->model, tree->data, z, tree->turns);
    tree->sized = 1;
}

/* The sizes of the last residual that was computed with them. */
INLINE void tree_sizes(const struct newton *it, const double *z, double *size)
{
    const struct tree_equation *tree = it->equation;
    (void)z;
    for (int i = 0; i < it->n && tree->sized; ++i)
        size[i] = larger_of(tree->data->r_size[i], LEAST);
}

INLINE int tree_factor(const struct newton *it)
{
    const struct tree_equation *tree = it->equation;
    return kkt_factor(tree->model, tree->data, NEWTON_EQUATION);
}

INLINE void tree_solve(const struct newton *it, const double *r, double *y)
{
    const struct tree_equation *tree = it->equation;
    kkt_solve(tree->model, tree->data, r, y);
}

/* Whether new factors, which cost no more than another iteration in the plane, and than two in
 * space, would save as many. */
INLINE int tree_factors_pay(const struct newton *it, double error, double rate)
{
    const struct tree_equation *tree = it->equation;
    const int cheap = tree->model->planar && !tree->model->n_constraints;
    return error * (cheap ? rate : rate * rate * rate) > TOLERANCE;
}

static const struct newton_callbacks TREE_STEP = {
    tree_residual, tree_jacobian, tree_sizes, tree_factor, tree_solve, tree_factors_pay, NULL,
};

/* z (n_unknowns) becomes `from`. */
static void remember(const struct tree_model *model, double *z, const double *from)
{
    memcpy(z, from, sizeof(double) * (model->n_free + model->n_constraints));
}

/* The residual at z with its sizes; its relative error. */
INLINE double measure(const struct newton *it, const double *z)
{
    struct tree_equation *tree = it->equation;
    kkt_residual(tree->model, tree->data, z, tree->turns);
    tree->sized = 1;
    tree_sizes(it, z, it->size);
    return relative_error(it->n, it->r, it->size);
}

/* Newton's first correction from z = 0, with the mass matrix (T21): about the velocity of the
 * state. Returns whether it is singular; z stays zero then. */
static int leave_zero(const struct newton *it, double *z)
{
    const struct tree_equation *tree = it->equation;
    memset(z, 0, sizeof(double) * it->n);
    kkt_residual(tree->model, tree->data, z, 0.0);
    const int singular = kkt_factor(tree->model, tree->data, MASS_MATRIX);
    if (!singular) kkt_solve(tree->model, tree->data, it->r, z);
    return singular;
}

/* z: in a guess, which does not count if the iteration `leaves` zero, out the solution; `patient`:
 * with the natural test. info: iterations, relative error, largest |r|. */
static int iterate(const struct tree_model *model, const struct tree_data *data, int leaves,
                   int patient, double *z, double *info)
{
    struct tree_equation tree = {model, data, largest_turn(model, data), !leaves, 0};
    const struct newton it = {
        model->n_free + model->n_constraints,
        &tree,
        data->r,
        data->known_size,
        data->dz,
        data->trial,
        data->start,
        data->larger,
        data->after,
    };
    struct newton_start from = {.rate = USUAL_RATE};
    if (leaves) from.singular = leave_zero(&it, z);
    from.error = measure(&it, z);
    if (!leaves) { /* of a close guess the mass matrix usually suffices */
        from.fresh = from.error * USUAL_RATE * USUAL_RATE > 0.01 * TOLERANCE;
        from.singular = kkt_factor(model, data, from.fresh ? NEWTON_EQUATION : MASS_MATRIX);
    }
    return newton_iteration(&it, &TREE_STEP, patient, from, z, info);
}

/* Whether the last correction is round-off, after which a step needs no other residual. Round-off
 * in the position of a stiff spring's end does not count as round-off of its force. */
INTERNAL int settled(const struct tree_model *model, const double *info)
{
    return !n_multipliers(model) && !model->n_springs && !model->n_dampers && info[1] <= TOLERANCE;
}

/* Configuration and momenta after the step (T3) with the unknowns in data->z. What is left of r
 * where it was taken last, which the last correction takes away, goes to the momenta: r + rho1
 * changes with the unknowns by h times less than rho1. */
static void readout(const struct tree_model *model, const struct tree_data *data, double *x1)
{
    double *rho1 = x1 + model->nq;
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const int v = j->v_index, q = j->q_index, n = j->n_dof;
        if (v >= model->nv) continue;
        if (j->type < GENERATED) {
            const double rate = rate_of(model, data, j, data->z);
            x1[q] = is_prescribed(j) ? data->u[model->n_forces + v - model->n_free]
                                     : data->q[q] + data->h * rate;
            rho1[v] = is_prescribed(j)
                          ? rate
                          : data->r[v] + data->half_step * data->dL_dq[v] + data->dL_dv[v] +
                                (1 - model->start_fraction) * data->h *
                                    (data->joint_force[v] - resistance(j, rate));
            continue;
        }
        struct multi_dof_joint *w = data->multi_dof + j->multi_dof_index;
        joint_endpoint(model, data, j, w);
        memcpy(x1 + q, w->end, sizeof(double) * (j->n_dof + (j->quaternion != NO_QUATERNION)));
        for (int l = 0; l < n; ++l) {
            const struct twist D = twist_of(w->Z1, n, l), S = twist_of(w->S1, n, l);
            rho1[v + l] =
                data->r[v + l] + data->h * (dot(D.w, w->mu_torque) + dot(D.v, w->mu_force) +
                                            dot(S.w, w->b_torque) + dot(S.v, w->b_force));
        }
    }
    if (model->n_shared) add_mimic_rows(model, data, data->half_step, 1.0, rho1);
    for (int v = 0; model->n_wrenches + model->n_dampers && v < model->n_free; ++v)
        rho1[v] += (1 - model->start_fraction) * data->h * data->wrench_force[v];
}

/* Whether the quaternions of the configuration at the start have length 1. */
static int on_manifold(const struct tree_model *model, const struct tree_data *data)
{
    for (int i = 0; i < model->n_bodies; ++i) {
        const struct joint *j = model->joints + i;
        const double *q = data->q + j->q_index;
        if (!j->quaternion) continue;
        const double off = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1.0;
        if (!(4.0 * ROUNDED * ROUNDED - off * off > 0.0)) return 0;
    }
    return 1;
}

/* Whether n numbers are finite. */
static int all_finite(const double *x, int n)
{
    for (int i = 0; i < n; ++i)
        if (!isfinite(x[i])) return 0;
    return 1;
}

/* The inputs on joints by rates, into data->joint_force. */
static void load_forces(const struct tree_model *model, const struct tree_data *data)
{
    memset(data->joint_force, 0, sizeof(double) * model->n_rates);
    for (int i = 0; i < model->n_forces; ++i)
        if (model->actuated_rates[i] >= 0)
            data->joint_force[model->actuated_rates[i]] += data->u[i];
}

/* The iteration from z = 0. */
static int from_zero(const struct tree_model *model, const struct tree_data *data, int patient,
                     double *z, double *info)
{
    memset(z, 0, sizeof(double) * (model->n_free + model->n_constraints));
    return iterate(model, data, 0, patient, z, info);
}

/* The velocity of the state into z: M v = rho (T21), with constraints (T30). */
INTERNAL int velocity_of(const struct tree_model *model, const struct tree_data *data, double *z)
{
    const struct tree_data node = node_of(data);
    memset(z, 0, sizeof(double) * (model->n_free + model->n_constraints));
    memset(data->dz, 0, sizeof(double) * (model->n_free + model->n_constraints));
    residual(model, &node, z, 1.0);
    if (factor_with_forces(model, &node, NEWTON_EQUATION)) return SINGULAR;
    solve_with_forces(model, &node, data->r, data->dz);
    remember(model, z, data->dz);
    return model->n_constraints ? project_velocity(model, &node, z) : CONVERGED;
}

/* The iteration from the velocity of the state. */
static int from_velocity(const struct tree_model *model, const struct tree_data *data, int patient,
                         double *z, double *info)
{
    const int status = velocity_of(model, data, z);
    return status == CONVERGED ? iterate(model, data, 0, patient, z, info) : status;
}

/* Whether another start may lead to a solution. */
static int may_have_a_solution(int status) { return status == STALLED || status == EXHAUSTED; }

/* A part of the step; generated functions take h from the parameters. */
static struct tree_data part_of(const struct tree_model *model, const struct tree_data *data,
                                double fraction)
{
    struct tree_data part = *data;
    part.h *= fraction;
    part.half_step *= fraction;
    if (model->n_wheel_rows) {
        memcpy(data->step_parameters, data->p, sizeof(double) * model->n_parameters);
        data->step_parameters[model->n_parameters - 1] = part.h;
        part.p = data->step_parameters;
    }
    return part;
}

/* From the velocity of the state by steps that grow from none to h: along the solutions that
 * belong to it. */
static int continuation(const struct tree_model *model, const struct tree_data *data, double *z,
                        double *info)
{
    double from = 0.0, by = 0.25, *reached = data->reached;
    int status = velocity_of(model, data, z);
    while (status == CONVERGED && from < 1.0) {
        const double to = fmin(from + by, 1.0);
        const struct tree_data part = part_of(model, data, to);
        remember(model, reached, z);
        status = iterate(model, &part, 0, 0, z, info);
        if (status == CONVERGED) {
            from = to;
            by *= 2.0;
        } else if (by > LEAST_GROWTH && may_have_a_solution(status)) {
            remember(model, z, reached);
            by *= 0.25;
            status = CONVERGED;
        }
    }
    if (may_have_a_solution(status)) { /* these end before h */
        remember(model, z, reached);
        status = iterate(model, data, 0, 1, z, info);
    }
    return status;
}

/* The unknowns of a step without contacts. Starts, in this order: the guess of a warm start, the
 * mass matrix, zero, zero with patience, the velocity, continuation. */
static int solve(const struct tree_model *model, const struct tree_data *data, enum start start,
                 double *z, double *info)
{
    int status = STALLED;
    if (start != FROM_ZERO) status = iterate(model, data, 0, 0, z, info);
    if (status != CONVERGED) status = iterate(model, data, 1, 0, z, info);
    if (status != CONVERGED) status = from_zero(model, data, 0, z, info);
    if (may_have_a_solution(status)) status = from_zero(model, data, 1, z, info);
    if (may_have_a_solution(status)) status = from_velocity(model, data, 0, z, info);
    if (may_have_a_solution(status)) status = continuation(model, data, z, info);
    if (status != CONVERGED) return status;
    if (settled(model, info)) memcpy(data->z, z, sizeof(double) * model->n_free);
    else kkt_residual(model, data, z, 0.0);
    return CONVERGED;
}

/* One step of the arrays a: from a[X] under a[U] to a[X1], unknowns in a[Z]. */
int tree_step(double *const *a)
{
    const struct tree tree = tree_at(a);
    const struct tree_model *model = &tree.model;
    const struct tree_data *data = &tree.data;
    double *z = model->n_rolling ? data->unknowns : a[Z];
    const enum start start = (enum start)a[WARM][0];
    if (model->n_rolling) load_unknowns(model, data, a[Z]);
    load_forces(model, data);
    start_constraints(model, data);
    const int status = model->n_impulses ? solve_contacts(model, data, start, z, a[INFO])
                                         : solve(model, data, start, z, a[INFO]);
    if (model->n_rolling) store_unknowns(model, data, a[Z]);
    if (status != CONVERGED) return status;
    readout(model, data, a[X1]);
    if (model->n_rolling && project_momentum(model, data, a[X1]) != CONVERGED) return SINGULAR;
    const int n_x = model->nq + model->nv, n_u = model->n_forces + model->nv - model->n_free;
    if (!all_finite(a[X], n_x) || !all_finite(a[U], n_u) || !all_finite(a[X1], n_x))
        return NOT_FINITE;
    return on_manifold(model, data) ? CONVERGED : OUTSIDE;
}
