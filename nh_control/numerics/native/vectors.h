#ifndef NH_VECTORS_H
#define NH_VECTORS_H
/* Vectors whose sizes are data. */
#include <string.h>

enum { DONE, FAILED };

/* a . b, in the order of the indices. */
static inline double dot(long long n, const double *a, const double *b)
{
    double sum = n ? a[0] * b[0] : 0.0;
    for (long long i = 1; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* to (n) = from (n). */
static inline void copy(double *to, const double *from, long long n)
{
    memcpy(to, from, sizeof(double) * (size_t)n);
}

#endif
