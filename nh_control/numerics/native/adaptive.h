#ifndef NH_ADAPTIVE_H
#define NH_ADAPTIVE_H
#include "adaptive_definitions.h"
#include "function.h"

/* A differential equation: n_x numbers of a point, n_f of the field, n_errors differences from
 * embedded solutions, n_dense numbers of a curve between two points. `places` lists the numbers of
 * a point block by block, `blocks` the sizes of the blocks whose norms count.
 *
 * trial(x, f, u, p, h) -> x1, f1, errors, dense; point(x, dense, theta) -> y; events(t, x, u, p)
 * -> g; start(x, f, u, p, h) -> the field and the rate of x at tau(h f) . x. */
struct equation {
    int n_x, n_f, n_errors, n_dense, n_events, n_blocks;
    const int *blocks, *places;
    double exponent;
    struct function trial, point, events, start;
};
#endif
