/* The hash of the C files from which the library was built. */
#ifndef NH_DIGEST
#define NH_DIGEST ""
#endif

const char *nh_digest(void) { return NH_DIGEST; }
