/* Wrenches that are inputs or constant: torques or forces u e at a point of a body, e in its axes
 * (`body_fixed`) or in the world's. In the middle of the step they act by virtual power on the
 * coordinates of all joints that carry the body (T25), like inputs on these. Newton's equation
 * leaves changes of these forces out, which are smaller than the others by the order h^2; the
 * derivatives contain them (T27, force_columns.c).
 *
 * Equations (T...): doc/tree_kernel.md. */
#include "kernel.h"

/* A wrench with the input u about the origin of its body. */
static struct twist wrench_at_origin(const struct tree_data *data, const struct external_wrench *p,
                                     double u)
{
    const struct body *b = data->bodies + p->body;
    const v4 e = u * (p->body_fixed ? outward(b, p->e) : p->e);
    return p->torque ? (struct twist){e, vec(0, 0, 0)}
                     : (struct twist){cross(outward(b, p->at), e), e};
}

/* The amount of a wrench: its input or a constant. */
static double amount_of(const struct tree_data *data, const struct external_wrench *p)
{
    return p->input < 0 ? p->value : data->u[p->input];
}

/* Adds the generalized forces of a wrench with the input u to f (T25), from its body to the
 * root. */
INTERNAL void add_generalized_force(const struct tree_model *model, const struct tree_data *data,
                                    const struct external_wrench *p, double u, double *f)
{
    struct twist w = wrench_at_origin(data, p, u);
    for (int i = p->body; i >= 0; i = model->joints[i].parent) {
        const struct joint *j = model->joints + i;
        const struct body *b = data->bodies + i;
        for (int l = 0; l < j->n_dof; ++l)
            f[j->rate_index + l] += j->ratio * power(w, unit_motion(data, j, b, l));
        w.w += cross(b->p, w.v);
    }
}

/* The generalized forces of all wrenches and dampers, into data->wrench_force. */
static void generalized_forces(const struct tree_model *model, const struct tree_data *data)
{
    memset(data->wrench_force, 0, sizeof(double) * model->nv);
    for (int i = 0; i < model->n_wrenches; ++i)
        add_generalized_force(model, data, model->wrenches + i,
                              amount_of(data, model->wrenches + i), data->wrench_force);
    for (int i = 0; i < model->n_dampers; ++i) {
        struct external_wrench end[2];
        const int count = damper_wrenches(data, model->point_forces + model->n_springs + i, end);
        for (int e = 0; e < count; ++e)
            add_generalized_force(model, data, end + e, 1.0, data->wrench_force);
    }
}

/* Their part in the residual (T2), and bounds on its terms. */
INTERNAL void add_wrench_residual(const struct tree_model *model, const struct tree_data *data,
                                  int sized)
{
    generalized_forces(model, data);
    for (int v = 0; v < model->n_free; ++v)
        data->r[v] += model->start_fraction * data->h * data->wrench_force[v];
    if (!sized) return;
    for (int i = 0; i < model->n_wrenches; ++i) {
        const struct external_wrench *p = model->wrenches + i;
        const double size = fabs(data->h * amount_of(data, p)) * size_of(p->e);
        add_wrench_sizes(model, data, p->body, p->at, p->torque ? size : 0.0,
                         p->torque ? 0.0 : size);
    }
    add_damper_sizes(model, data);
}

/* A motion about another point, `by` times. */
static struct twist about_point(double by, struct twist x, v4 from)
{
    return (struct twist){by * x.w, by * (x.v - cross(x.w, from))};
}

/* The coordinates that carry a body; their number. */
static int supporting_coordinates(const struct tree_model *model, const struct tree_data *data,
                                  int body, const int *place, struct supporting_coordinate *c)
{
    int count = 0;
    v4 from = vec(0, 0, 0);
    for (int i = body; i >= 0; i = model->joints[i].parent) {
        const struct joint *j = model->joints + i;
        const struct body *b = data->bodies + i;
        const int n = j->n_dof;
        struct twist unit[MAX_DOF], z[MAX_DOF], q[MAX_DOF];
        joint_motions(data, j, b, UNIT, unit);
        joint_motions(data, j, b, BY_UNKNOWN, z);
        joint_motions(data, j, b, BY_START, q);
        for (int l = 0; l < n; ++l)
            c[count++] = (struct supporting_coordinate){
                i, place[j->rate_index + l], about_point(j->ratio, unit[l], from),
                about_point(j->ratio, z[l], from), about_point(j->ratio, q[l], from)};
        from -= b->p;
    }
    return count;
}

/* The change of the generalized force on a coordinate by the motion x of a body that carries the
 * body of the wrench. */
static double wrench_derivative(const struct tree_model *model, const struct tree_data *data,
                                const struct external_wrench *p, struct twist w,
                                const struct supporting_coordinate *on, int moved, struct twist x)
{
    struct twist change = {cross(x.w, w.w), vec(0, 0, 0)};
    if (p->torque && !p->body_fixed) change.w = vec(0, 0, 0);
    else if (!p->torque && p->body_fixed)
        change = (struct twist){cross(x.w, w.w) + cross(x.v, w.v), cross(x.w, w.v)};
    else if (!p->torque)
        change.w = cross(x.v + cross(x.w, outward(data->bodies + p->body, p->at)), w.v);
    double by = power(change, on->unit);
    if (moved > on->body) return by;
    const int placed = moved == on->body && model->joints[moved].quaternion == QUATERNION_PLACED &&
                       size_of(on->unit.w) == 0.0;
    const struct twist turned = {cross(x.w, on->unit.w),
                                 cross(x.w, on->unit.v) + cross(x.v, on->unit.w)};
    return placed ? by : by + power(w, turned);
}

/* Adds the part of one wrench to F_z and F_q of `wrench_derivatives`. */
static void add_wrench_derivatives(const struct tree_model *model, const struct tree_data *data,
                                   const struct external_wrench *p, double u, int n,
                                   const int *place, double *F_z, double *F_q)
{
    const struct twist w = wrench_at_origin(data, p, model->start_fraction * data->h * u);
    struct supporting_coordinate *c = data->supporting;
    const int count = supporting_coordinates(model, data, p->body, place, c);
    for (int a = 0; a < count; ++a)
        for (int b = 0; b < count; ++b) {
            F_z[n * c[a].at + c[b].at] +=
                wrench_derivative(model, data, p, w, c + a, c[b].body, c[b].by_z);
            F_q[n * c[a].at + c[b].at] +=
                wrench_derivative(model, data, p, w, c + a, c[b].body, c[b].by_q);
        }
}

/* F_z and F_q (n, n) of (T27): changes of alpha h f by the unknowns, or the ends of prescribed
 * coordinates, and by the start of the n coordinates that carry a body on which a wrench or damper
 * acts; `place` numbers these. */
INTERNAL void wrench_derivatives(const struct tree_model *model, const struct tree_data *data,
                                 int n, const int *place, double *F_z, double *F_q)
{
    memset(F_z, 0, sizeof(double) * n * n);
    memset(F_q, 0, sizeof(double) * n * n);
    for (int i = 0; i < model->n_wrenches; ++i)
        add_wrench_derivatives(model, data, model->wrenches + i,
                               amount_of(data, model->wrenches + i), n, place, F_z, F_q);
    for (int i = 0; i < model->n_dampers; ++i) {
        const struct point_force *c = model->point_forces + model->n_springs + i;
        struct external_wrench end[2];
        const int count = damper_wrenches(data, c, end);
        for (int e = 0; e < count; ++e)
            add_wrench_derivatives(model, data, end + e, 1.0, n, place, F_z, F_q);
        add_damper_derivatives(model, data, c, n, place, F_z, F_q);
    }
}
