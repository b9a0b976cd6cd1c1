#ifndef NH_ADAPTIVE_SYSTEM_H
#define NH_ADAPTIVE_SYSTEM_H
/* A differential equation of two numbers, so that adaptive.c compiles by itself. When an equation
 * is compiled the constants of adaptive.py take the place of this file, behind its functions,
 * which CasADi generates. */
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
    VALUES
};
enum status { UNFINISHED, FINISHED, STOPPED, UNDERFLOWN };
enum control { TIME, END, SIZE, LARGEST, RTOL, ERROR };
enum counts { TRIALS, STORED };

#define N_X 2      /* numbers of a point */
#define N_F 2      /* numbers of the field */
#define N_ERRORS 1 /* differences to embedded solutions */
#define N_DENSE 4  /* numbers of a curve between two points */
#define N_EVENTS 1
#define BLOCKS 2    /* sizes of the blocks of numbers whose norms count */
#define PLACES 0, 1 /* the numbers block by block */
#define EXPONENT 0.2
#define SAFETY 0.9
#define LEAST 0.2
#define MOST 10.0
#define DAMPING 0.1

/* A trial of size h from x with the field f. */
int call_nh_trial(const double *x, const double *f, const double *u, const double *p,
                  const double *h, double *x1, double *f1, double *errors, double *dense);
/* The point at the fraction theta of a step. */
int call_nh_point(const double *x, const double *dense, const double *theta, double *y);
int call_nh_events(const double *t, const double *x, const double *u, const double *p, double *g);
#endif
