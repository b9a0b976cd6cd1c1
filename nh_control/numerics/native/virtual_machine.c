/* Functions that CasADi's virtual machine evaluates until, or unless, they are compiled. */
#include <stddef.h>
#include <string.h>

#include "function.h"

typedef int (*routine)(const void *self, const double *const *in, double *const *out);

/* A buffer of CasADi's with its arrays, those of the arguments first, and their sizes. One thread
 * may use it. Another thread sets the compiled routine, which computes the same bits. */
struct virtual_function {
    routine compiled;
    void (*evaluate)(void *buffer);
    void *buffer;
    long long n_in, n_out;
    const long long *sizes;
    double *const *arrays;
};

/* The routine of a `struct function` whose `self` is a virtual function. */
int nh_virtual(const void *self, const double *const *in, double *const *out)
{
    const struct virtual_function *f = self;
    const routine compiled = __atomic_load_n(&f->compiled, __ATOMIC_ACQUIRE);
    if (compiled) return compiled(NULL, in, out);
    const long long n_in = f->n_in;
    for (long long k = 0; k < n_in; ++k)
        memcpy(f->arrays[k], in[k], sizeof(double) * (size_t)f->sizes[k]);
    f->evaluate(f->buffer);
    for (long long k = 0; k < f->n_out; ++k)
        if (out[k])
            memcpy(out[k], f->arrays[n_in + k], sizeof(double) * (size_t)f->sizes[n_in + k]);
    return 0;
}
