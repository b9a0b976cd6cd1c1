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
};

/* Constants of newton.py, and of contacts. */
#define TARGET 3.552713678800501e-15
#define ACCEPT 1e-10
#define LEAST 1e-300
#define REFRESH 0.15
#define MAX_ITERATIONS 25
#define MAX_HALVINGS 12
#define MAX_RATIO 3.0
#define ROUNDED 0.001
#define CONE_FLOOR 1e-15
#define CONTACT_ITERATIONS 100
#define CONTACT_CLOSE 0.0001
#define CONTACT_ROUND_OFF 3e-14
#define CONTACT_FEASIBLE 1e-11
#define CONTACT_CENTERING 0.3
#define CONTACT_LEAST 0.01
#define CONTACT_NEAR 100.0
#define CONTACT_BACK 0.95
#define CONTACT_SHORT 0.2
#define CONTACT_OUTER_ITERATIONS 30
#define CONTACT_SETTLED 1e-10
#define CONTACT_STALLED 1e-06
#define CONTACT_CORRECTIONS 3
#define PATH_HIGHER 100000000.0
#define PATH_STEPS 300
#define PATH_FIRST 2.0
#define PATH_LONGEST 4.0
#define PATH_LEAST 1e-05
#define PATH_SHORTER 0.3
#define PATH_LONGER 2.0
#define PATH_EASY 3
#define PATH_CORRECTIONS 8
#define PATH_HALVINGS 30
#define PATH_CLOSE 0.001
#define PATH_SMALL 0.001
#define PATH_RETURN 30
#endif
