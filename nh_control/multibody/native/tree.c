/* A tree of rigid bodies as data. The kernel is compiled once for all trees: tree_*.c in this
 * order, after it numerics/native/simulate.c. Everything is read from the list of arrays that a
 * routine is called with, a[X], a[U], a[P], ...; a[TREE] is the model, a[MEMORY] one thread's
 * room.
 *
 * A body's frame is that of the joint that moves it: a revolute joint turns about its z, a
 * prismatic one slides along its x. Twists (w, v), and wrenches (m, f), dual to them, are about
 * the frame's origin and in the world's axes: from a body to its parent only the origin shifts.
 * Changes of them are those that the body sees, as if the axes turned with it. A vector is three
 * numbers and a zero, so that it fits a vector register; all sums are written out, so that the
 * bits do not depend on the processor. */
#include <math.h>
#include <string.h>

typedef double v4 __attribute__((vector_size(32), aligned(8)));
/* Right-hand sides side by side, as many as a vector register holds. */
#ifdef __AVX512F__
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef double vn __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef long long places __attribute__((vector_size(32)));
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define MIX(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define MIX(a, b, i, j, k, l) __builtin_shuffle(a, b, (places){i, j, k, l})
#endif
#define SHUFFLE(a, i, j, k, l) MIX(a, a, i, j, k, l)

enum { REVOLUTE, PRISMATIC, MANIFOLD }; /* further kinds of joints count on from MANIFOLD */
/* In the place of `turns`: velocities of its origin are in the axes of the placement. */
enum { PLACED = 2 };
/* In the place of `prescribed`: the joint follows another that is not, it is followed, it is
 * prescribed and carries no mass. */
enum { FOLLOWS = -2, SHARED, IDLE = 2 };
enum { MOST = 6 }; /* coordinates of a joint */

/* A joint and the body that it moves. `q`, `v`: where its coordinates begin; `size` rates, and a
 * number more if they begin with a quaternion (`turns`); `weight`: mass of all that it carries;
 * `pull`: stiffness times rest; `held_by`: whether constraints hold it. A joint that follows
 * another moves by `ratio` times that one's coordinate, whose rate is number `lead`, of others
 * `v`; its own `v` counts on from nv. */
typedef struct {
    double parent, kind, q, v, size, lead, turns, prescribed, wide, mass, weight, stiffness, pull,
        damping, ratio, held_by;
    v4 column[3], p; /* placement: columns of the rotation, position */
    v4 first;        /* mass times center */
    v4 inertia[3];   /* rows of the inertia about the frame's origin */
} Joint;

/* What a sweep knows of a body: columns of its rotation, position in the parent, twist `nu` that
 * the parent gives it and its own `xi`, mass times center, the wrenches `b` (momentum) and `am`
 * (torque of gravity and springs) of all that it carries; then Newton's equation: (dam, db) =
 * H (turn, dxi) + c, mass times center of all. With springs: position `at` in the world, and the
 * forces `pulled` of those on what it carries.
 * Sizes of the terms that add up: `lever` to p, `turning` and `speed` to xi along the chain from
 * the root, `torque`, `moment`, `force` and, of springs, `strain` to the wrenches. What these add
 * up to may be zero where its terms are not. */
typedef struct {
    v4 column[3], p;
    v4 nu_w, nu_v, xi_w, xi_v, first;
    v4 am, bm, bf;
    v4 H[27], c[3], x[3], carried, at, pulled, kept[2];
    double torque, moment, force, rate, begun, depth, strain, lever, turning, speed, unused[2];
} Body;

/* Newton's equation along one coordinate: the body moves by phi dz, the parent's wrenches by those
 * of `column` dz; its row is `left` on the body's wrenches, `row` on its motion before its own dz.
 * `column_in`, `row_in`: on wrenches and motions of the parent. With index 1: of the momentum
 * after the step. `by_q`: of a change of the coordinate at the start. */
typedef struct {
    v4 phi[3], column[3], row[3], left[3], column_in[3], row_in[3];
    double pivot, slope1, source, source1;
    v4 row1[3], left1[3], phi_q[3], column_q[3];
} Row;

/* Joints of several coordinates: what the generated functions return, in the body's axes, and
 * small matrices. */
typedef struct {
    double turn[9], at[3], twist[6];
    double Z0[36], S0[36], Zz[36], Sz[36]; /* body-frame displacement and twist by a change of the
                                              start that leaves the end, and by the unknowns */
    double Zq[36], Sq[36], Z1[36], S1[36],
        end[8]; /* by a change of the start; of the end; the end */
    double K[36], K1[36], Kq[36], K1q[36], Ez[36],
        Eq[36]; /* derivatives of the joint's rows; of local(end, .) */
    double pivot[36], slope1[36], source[36], source1[36];
    v4 am, af, bm, bf; /* adjoint of the displacement, adjoint of the twist */
    int order[MOST];
} Wide;

/* Their pose at a node in the placement, displacements D (6, n) by every coordinate and those of
 * D; derivatives of the end of a step by the unknowns. */
typedef struct {
    double turn[9], at[3], D[36], dD[216], Ez[36];
} Node;

/* A row of the constraints (constraints.c); the pose of a body in the world, `far` the size
 * of the terms that add up to p; a motion, or a wrench. */
typedef struct {
    double kind, a, b, turning, length_q, length_v, value, unused;
    v4 at_a, at_b, e_a, e_b;
} Constraint;

/* A wrench that an input gives (external_wrenches.c). */
typedef struct {
    double body, torque, turning, input;
    v4 at, e;
} Push;

/* A spring or a damper between points of two bodies (point_forces.c). */
typedef struct {
    double a, b, stiffness, rest, damping, unused[3];
    v4 at_a, at_b;
} Bond;
typedef struct {
    v4 column[3], p;
    double far, unused[3];
} Place;
typedef struct {
    v4 w, v;
} Twist;

/* A constraint where its bodies are placed: s, directions, length, its value and the size of its
 * terms; wrenches on a and b about the place of a's point. */
typedef struct {
    v4 from, s, e_a, e_b;
    double length, value, size, torque, force; /* torque, force: bounds of the wrenches' */
    Twist on_a, on_b;
} Held;

/* The generated functions of a kind of them. */
typedef struct {
    int (*middle)(const double *, const double *, const double *, double *, double *, double *,
                  double *, double *);
    int (*along)(const double *, const double *, const double *, double *, double *);
    int (*after)(const double *, const double *, const double *, double *, double *, double *);
    int (*bend)(const double *, const double *, const double *, const double *, const double *,
                double *);
    int (*slopes)(const double *, const double *, const double *, const double *, const double *,
                  double *, double *, double *, double *, double *, double *, double *);
    int (*growth)(const double *, const double *, const double *, const double *, const double *,
                  double *, double *, double *, double *, double *);
    int (*node)(const double *, double *, double *, double *, double *);
    int (*reach)(const double *, const double *, const double *, double *, double *);
} Functions;

typedef struct {
    double n, nq, nv, nz, np, nu, wides, left, m, leaders, followers, held, pushes, carriers,
        plane, springs, dampers,
        unused[3]; /* after it: `n` joints, `actuated` coordinates of the forces, -1 of wrenches,
                      `m` constraints, `pushes`, `springs`, `dampers`, functions of the kinds
                      of joints; np: parameters and h; left: part of the forces at the start;
                      leaders: joints that others follow; held: stiffness times the square of
                      rest of all springs; carriers: coordinates that carry something pushed or
                      damped; plane: all moves in one, whose normal is the world's z */
    v4 gravity;
} Header;

typedef struct {
    int n, nq, nv, nz, nu, m, leaders, pushes, plane, springs, dampers,
        all;                 /* all: rates of all joints, with those that follow others */
    double h, k, span, left; /* span: the time in which prescribed coordinates move */
    v4 gravity;
    const Joint *joints;
    const Functions *functions;
    const Constraint *constraints;
    const Push *push;
    const Bond *bonds;
    const double *actuated, *q, *rho, *u;
    double *r, *size, *known, *force, *low, *high, *at, *trial, *dz, *weights, *reached,
        *pushed; /* at: the unknowns of the last residual; known: its sizes at the iterate before
                  */
    Body *bodies;
    Row *rows;
    Wide *wides;
    vn *lanes;
    Place *places;
    Twist *motions;
    Node *nodes;
    Held *holds;
    double *end, *G0, *sizes, *begun, *G1, *Y, *schur, *replies, *ab,
        *by_lam; /* of the constraints: configuration after the step; Dh before it and sizes of its
                    terms and of those of h, Dh after it, Y, the small matrix, sizes of its terms;
                    derivatives by multipliers */
    double *Y_shared, *shared, *met, *by_shared,
        *ab_shared; /* of joints that others follow (mimic_joints.c) */
    double *before, *after, *by_z, *by_q, *reply,
        *bonded;     /* of springs and dampers (low_rank_update.c) */
    double *changed; /* of wrenches, springs and dampers */
    int *order, *lead, *shared_order, *bonded_order;
} Tree;

#define TREE_OF(a) ((const Header *)(a)[TREE])
#define N_X ((int)(TREE_OF(a)->nq + TREE_OF(a)->nv))
#define N_U ((int)TREE_OF(a)->nu)
#define N_Z ((int)(TREE_OF(a)->nz + TREE_OF(a)->m))
#define N_P ((int)TREE_OF(a)->np)

/* A number that is written into a vector in memory would hold up the reading of the vector. */
static const v4 UNITS[3] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};

INLINE v4 vec(double x, double y, double z) { return (v4){x, y, z, 0.0}; }
INLINE v4 load(const double *x) { return vec(x[0], x[1], x[2]); }
INLINE double sum(v4 a) { return a[0] + a[1] + a[2]; }
INLINE double dot(v4 a, v4 b) { return sum(a * b); }
INLINE double size_of(v4 a) { return fabs(a[0]) + fabs(a[1]) + fabs(a[2]); }
INLINE double product(int n, const double *x, const double *y)
{
    double total = 0.0;
    for (int i = 0; i < n; ++i) total += x[i] * y[i];
    return total;
}
INLINE v4 combine(const v4 *m, v4 x) { return m[0] * x[0] + m[1] * x[1] + m[2] * x[2]; }

INLINE v4 cross(v4 a, v4 b)
{
    const v4 t = a * SHUFFLE(b, 1, 2, 0, 3) - SHUFFLE(a, 1, 2, 0, 3) * b;
    return SHUFFLE(t, 1, 2, 0, 3);
}

/* (sum(a), sum(b), sum(c)). */
INLINE v4 sums(v4 a, v4 b, v4 c)
{
    const v4 zero = {0}, even = MIX(a, b, 0, 4, 2, 6), odd = MIX(a, b, 1, 5, 3, 7);
    return MIX(even, MIX(c, zero, 0, 4, 2, 6), 0, 1, 4, 5) +
           MIX(odd, MIX(c, zero, 1, 5, 3, 7), 0, 1, 4, 5) +
           MIX(even, MIX(c, zero, 2, 6, 2, 6), 2, 3, 4, 5);
}

/* A vector in the world's axes in those of the body, and back. */
INLINE v4 inward(const Body *b, v4 x)
{
    return sums(b->column[0] * x, b->column[1] * x, b->column[2] * x);
}
INLINE v4 outward(const Body *b, v4 x) { return combine(b->column, x); }
INLINE v4 axis_of(const Joint *j, const v4 *column) { return column[j->kind == REVOLUTE ? 2 : 0]; }

/* The world, which carries all. */
static const Body WORLD_BODY = {.column = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
INLINE const Body *parent_of(const Tree *t, const Joint *j)
{
    return j->parent < 0 ? &WORLD_BODY : t->bodies + (int)j->parent;
}

/* The force on all that a body carries that does not turn with it: weight and springs. */
INLINE v4 load_on(const Tree *t, const Joint *j, const Body *b)
{
    return j->weight * t->gravity + b->pulled;
}
