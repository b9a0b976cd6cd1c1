#ifndef NH_DEFINITIONS_H
#define NH_DEFINITIONS_H
/* Written by discrete/native_text.py: `definitions`. */

/* Arrays of a workspace in its list. */
enum array {
    X,
    U,
    P,
    Z,
    X1,
    WARM,
    SIZES,
    INFO,
    R_Z,
    FACTORS,
    PIVOTS,
    DZ,
    AB,
    G_Z,
    LAM,
    LAM_Z,
    MU,
    FULL,
    G,
    HALF,
    HESSIAN,
    SYSTEM,
    ROOM,
    TREE,
    MEMORY,
    SLOPES,
};

/* How a step ends. */
enum status {
    CONVERGED,
    NOT_FINITE,
    SINGULAR,
    STALLED,
    EXHAUSTED,
    OUTSIDE,
    HALF_TURN,
    NO_IMPULSES,
};

/* Where a step starts its search. */
enum start {
    FROM_ZERO,
    FROM_GUESS,
    FROM_CLOSE,
    FROM_LAST_STEPS,
};

/* Constants of newton.py. */
#define TOLERANCE 3.552713678800501e-15
#define ACCEPT 1e-10
#define LEAST 1e-300
#define REFRESH 0.15
#define CLOSE 0.001
#define MAX_ITERATIONS 25
#define MAX_HALVINGS 12
#define MAX_RATIO 3.0
#define ROUNDED 0.001
#endif
