#ifndef NH_FUNCTION_H
#define NH_FUNCTION_H
/* A function of a system with dense arguments and results, matrices row by row: generated C, or
 * CasADi's virtual machine (virtual_machine.c). A result that is NULL is not computed. */
struct function {
    int (*call)(const void *self, const double *const *in, double *const *out);
    const void *self;
};

/* A function of (x, u, z, p) with up to three results. */
static inline void call_at(const struct function *f, const double *x, const double *u,
                           const double *z, const double *p, double *first, double *second,
                           double *third)
{
    const double *const in[] = {x, u, z, p};
    double *const out[] = {first, second, third};
    f->call(f->self, in, out);
}
#endif
