/* Wake-ups: one thread waits until another thread posts, or until a time has passed. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NANOSECONDS 1000000000

struct wakeup {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int posted;
};

/* A wake-up that has not been posted; NULL without memory. It is never freed, because threads of
 * the middleware may post at any time. */
struct wakeup *nh_wakeup_new(void)
{
    struct wakeup *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return w;
}

/* Wake the waiting thread, or the next one that waits. The type is that of rcl_event_callback_t,
 * so the middleware can call this function for every message; the number of messages is not used.
 */
void nh_wakeup_post(const void *wakeup, size_t messages)
{
    struct wakeup *w = (struct wakeup *)wakeup;
    (void)messages;
    pthread_mutex_lock(&w->mutex);
    w->posted = 1;
    pthread_mutex_unlock(&w->mutex);
    /* after the unlock, so that the woken thread does not wait for the mutex */
    pthread_cond_signal(&w->changed);
}

/* Forget earlier posts. */
void nh_wakeup_clear(struct wakeup *w)
{
    pthread_mutex_lock(&w->mutex);
    w->posted = 0;
    pthread_mutex_unlock(&w->mutex);
}

/* Wait until there is a post that was not cleared, for at most `longest` ns. */
void nh_wakeup_wait(struct wakeup *w, int64_t longest)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const int64_t ns = end.tv_nsec + longest;
    end.tv_sec += ns / NANOSECONDS;
    end.tv_nsec = ns % NANOSECONDS;
    pthread_mutex_lock(&w->mutex);
    for (int status = 0; !w->posted && !status;)
        status = pthread_cond_timedwait(&w->changed, &w->mutex, &end);
    pthread_mutex_unlock(&w->mutex);
}
