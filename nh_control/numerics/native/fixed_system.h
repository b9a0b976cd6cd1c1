#ifndef NH_FIXED_SYSTEM_H
#define NH_FIXED_SYSTEM_H
/* The functions of system.h for code that is compiled for one system: those that CasADi generates
 * before it. Sizes are constants, so that no function needs a `struct system`. */
struct system;

#define SYSTEM_OF(a) ((const struct system *)0)

#define call_start(system, ...) call_start(__VA_ARGS__)
#define call_residual(system, ...) call_residual(__VA_ARGS__)
#define call_jacobian(system, ...) call_jacobian(__VA_ARGS__)
#define call_terms(system, ...) call_terms(__VA_ARGS__)
#define call_readout(system, ...) call_readout(__VA_ARGS__)
#define call_contacts(system, ...) call_contacts(__VA_ARGS__)
#define call_first(system, ...) call_first(__VA_ARGS__)
#define call_second(system, ...) call_second(__VA_ARGS__)
#endif
