/* Work on all steps of a horizon by several threads, each with a workspace of its own. The steps
 * are independent of each other, so that results do not depend on the number of threads. */
#include <pthread.h>

#include "horizon.h"

#define STACK_BYTES (8L << 20) /* of a thread, for the generated functions of large systems */

/* The steps `from` ... `to` - 1 for one thread, with its view of the horizon; the `sizes` of the
 * terms of a step, on which its accuracy depends, are the same for all. */
struct share {
    struct horizon horizon;
    step_work work;
    const struct steps *steps;
    const double *sizes;
    long from, to;
    int failed;
};

/* The steps of a share, up to the first one that fails. */
static void *do_share(void *argument)
{
    struct share *s = argument;
    struct horizon *o = &s->horizon;
    for (long k = s->from; k < s->to && !s->failed; ++k) {
        o->failed_at = k;
        memcpy(o->arrays[SIZES], s->sizes, sizeof(double) * o->nz);
        s->failed = s->work(o, s->steps, k);
    }
    return NULL;
}

/* `work` on all steps; 1 where one fails, the first of which is `failed_at`. A thread that cannot
 * be had leaves its share to this one. */
INTERNAL int at_all_steps(const struct horizon *o, step_work work, const struct steps *s,
                          long *failed_at)
{
    const long n = o->threads;
    double sizes[o->nz + 1];
    struct share shares[n];
    pthread_t threads[n];
    int started[n], failed = 0;
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, STACK_BYTES);
    memcpy(sizes, o->arrays[SIZES], sizeof(double) * o->nz);
    for (long i = n - 1; i >= 0; --i) {
        const long from = o->steps * i / n, to = o->steps * (i + 1) / n;
        shares[i] = (struct share){*o, work, s, sizes, from, to, 0};
        shares[i].horizon.arrays = o->workspaces[i];
        started[i] = i && !pthread_create(threads + i, &large, do_share, shares + i);
        if (!started[i]) do_share(shares + i);
    }
    for (long i = 0; i < n; ++i) {
        if (started[i]) pthread_join(threads[i], NULL);
        if (shares[i].failed && !failed) *failed_at = shares[i].horizon.failed_at;
        failed |= shares[i].failed;
    }
    pthread_attr_destroy(&large);
    memcpy(o->arrays[SIZES], sizes, sizeof(double) * o->nz);
    return failed;
}
