#ifndef NH_FREE_STEP_H
#define NH_FREE_STEP_H
/* A step without its contacts: r (n) at unknowns, and r_y (n, n) where it is not 0. */
struct free_step {
    void (*equations)(const void *tree, const double *z, double *r, double *r_y);
    const void *tree;
};
#endif
