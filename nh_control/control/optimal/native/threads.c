/* Work on all steps of a horizon by several threads, each with its own workspace. The steps
 * are independent of each other, so that results do not depend on the number of threads. */
#include <pthread.h>

#include "horizon.h"

#define STACK_BYTES (8L << 20) /* of a thread, for the generated functions of large systems */

/* The steps `from` ... `to` - 1 for one thread. */
struct share {
    const struct horizon *horizon;
    const struct worker *worker;
    step_work work;
    const struct steps *steps;
    long from, to, failed_at;
    int failed;
};

/* The steps of a share, up to the first one that fails. */
static void *do_share(void *argument)
{
    struct share *s = argument;
    const struct horizon *o = s->horizon;
    for (long k = s->from; k < s->to && !s->failed; ++k) {
        s->failed_at = k;
        memcpy(s->worker->arrays[SIZES], o->sizes, sizeof(double) * o->nz);
        s->failed = s->work(o, s->worker, s->steps, k);
    }
    return NULL;
}

/* `work` on all steps; 1 where one fails, the first of which is `failed_at`. If a thread cannot be
 * started, this one takes over its share. */
int ocp_at_all_steps(struct horizon *o, step_work work, const struct steps *s)
{
    const long n = o->threads;
    const size_t bytes = sizeof(double) * o->nz;
    struct share shares[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int started[MAX_THREADS], failed = 0;
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, STACK_BYTES);
    memcpy(o->sizes, o->workers->arrays[SIZES], bytes);
    for (long i = n - 1; i >= 0; --i) {
        const long from = o->steps * i / n, to = o->steps * (i + 1) / n;
        shares[i] = (struct share){o, o->workers + i, work, s, from, to, 0, 0};
        started[i] = i && !pthread_create(threads + i, &large, do_share, shares + i);
        if (!started[i]) do_share(shares + i);
    }
    for (long i = 0; i < n; ++i) {
        if (started[i]) pthread_join(threads[i], NULL);
        if (shares[i].failed && !failed) o->failed_at = shares[i].failed_at;
        failed |= shares[i].failed;
    }
    pthread_attr_destroy(&large);
    memcpy(o->workers->arrays[SIZES], o->sizes, bytes);
    return failed;
}
