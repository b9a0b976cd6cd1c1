#ifndef NH_LANES_H
#define NH_LANES_H
/* Vectors of LANES numbers, one of each of the runs that a processor steps at once. No operation
 * mixes lanes, and each has the bits of the same operation on one number: arithmetic by vector
 * instructions, functions by one call for each lane. */
#include <math.h>

#ifndef LANES
#define LANES 4
#endif

typedef double lanes __attribute__((vector_size(8 * LANES)));
/* All bits of a lane, or none. */
typedef long long lane_mask __attribute__((vector_size(8 * LANES)));

#define LANE_INLINE static inline __attribute__((always_inline, unused))

/* A number in every lane. */
LANE_INLINE lanes in_all(double value) { return (lanes){0.0} + value; }

LANE_INLINE lane_mask all_lanes(void) { return ~(lane_mask){0}; }

/* a where a lane is in the mask, b elsewhere. */
LANE_INLINE lanes choose(lane_mask mask, lanes a, lanes b)
{
    return (lanes)((mask & (lane_mask)a) | (~mask & (lane_mask)b));
}

LANE_INLINE int any_lane(lane_mask mask)
{
    long long bits = 0;
    for (int i = 0; i < LANES; ++i) bits |= mask[i];
    return bits != 0;
}

LANE_INLINE lanes lane_fabs(lanes a) { return (lanes)((lane_mask)a & 0x7fffffffffffffffLL); }

LANE_INLINE lane_mask lane_finite(lanes a) { return lane_fabs(a) < INFINITY; }

/* Before a loop over lanes: without a loop, vectors stay in registers. */
#define EACH_LANE _Pragma("GCC unroll 8")

/* A function of the numbers x and y of a lane. */
#define LANE_BY_LANE(name, value)                                                                 \
    static __attribute__((unused, noinline)) lanes lane_##name(lanes a, lanes b)                  \
    {                                                                                             \
        lanes c = a;                                                                              \
        EACH_LANE                                                                                 \
        for (int i = 0; i < LANES; ++i) {                                                         \
            const double x = a[i], y = b[i];                                                      \
            (void)x, (void)y;                                                                     \
            c[i] = value;                                                                         \
        }                                                                                         \
        return c;                                                                                 \
    }

LANE_BY_LANE(exp, exp(x))
LANE_BY_LANE(log, log(x))
LANE_BY_LANE(pow, pow(x, y))
LANE_BY_LANE(sin, sin(x))
LANE_BY_LANE(cos, cos(x))
LANE_BY_LANE(tan, tan(x))
LANE_BY_LANE(asin, asin(x))
LANE_BY_LANE(acos, acos(x))
LANE_BY_LANE(atan, atan(x))
LANE_BY_LANE(floor, floor(x))
LANE_BY_LANE(ceil, ceil(x))
LANE_BY_LANE(fmod, fmod(x, y))
LANE_BY_LANE(sign, x < 0 ? -1 : x > 0 ? 1 : x)
LANE_BY_LANE(copysign, copysign(x, y))
LANE_BY_LANE(erf, erf(x))
LANE_BY_LANE(fmin, fmin(x, y))
LANE_BY_LANE(fmax, fmax(x, y))
LANE_BY_LANE(sinh, sinh(x))
LANE_BY_LANE(cosh, cosh(x))
LANE_BY_LANE(tanh, tanh(x))
LANE_BY_LANE(asinh, asinh(x))
LANE_BY_LANE(acosh, acosh(x))
LANE_BY_LANE(atanh, atanh(x))
LANE_BY_LANE(atan2, atan2(x, y))
LANE_BY_LANE(log1p, log1p(x))
LANE_BY_LANE(expm1, expm1(x))
LANE_BY_LANE(hypot, hypot(x, y))

/* Sine and cosine of one number, which compilers merge into one call; the second into `other`. */
static __attribute__((unused, noinline)) lanes lane_sin_and_other(lanes a, lanes *other)
{
    lanes c = a, d = a;
    EACH_LANE
    for (int i = 0; i < LANES; ++i) {
        const double x = a[i];
        c[i] = sin(x);
        d[i] = cos(x);
    }
    *other = d;
    return c;
}

LANE_INLINE lanes lane_cos_and_other(lanes a, lanes *other)
{
    lanes c;
    *other = lane_sin_and_other(a, &c);
    return c;
}

LANE_INLINE lanes lane_sqrt(lanes a)
{
    for (int i = 0; i < LANES; ++i) a[i] = sqrt(a[i]);
    return a;
}

/* 1 in the lanes of a mask, 0 elsewhere, as comparisons in C. */
LANE_INLINE lanes as_numbers(lane_mask mask) { return choose(mask, in_all(1.0), in_all(0.0)); }

#endif
