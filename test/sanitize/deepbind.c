/* dlopen without RTLD_DEEPBIND, by which CasADi is loaded and which the address sanitizer refuses:
 * its malloc must be that of all libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlopen(const char *file, int mode)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return next(file, mode & ~RTLD_DEEPBIND);
}
