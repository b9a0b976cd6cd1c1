#ifndef NH_ADAPTIVE_DEFINITIONS_H
#define NH_ADAPTIVE_DEFINITIONS_H
/* Written by numerics/adaptive.py: `definitions`. */

enum array {
    X,
    F,
    U,
    P,
    X1,
    F1,
    ERRORS,
    DENSE,
    CONTROL,
    ATOL,
    DIRECTIONS,
    LIMITS,
    SEEN,
    TIMES,
    STATES,
    CURVES,
    VALUES,
};

enum status {
    UNFINISHED,
    FINISHED,
    STOPPED,
    UNDERFLOWN,
};

enum control {
    TIME,
    END,
    SIZE,
    LARGEST,
    RTOL,
    ERROR,
};

enum counts {
    TRIALS,
    STORED,
};

#define SAFETY 0.9
#define LEAST 0.2
#define MOST 10.0
#define DAMPING 0.1
#endif
