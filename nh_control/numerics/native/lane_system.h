#ifndef NH_LANE_SYSTEM_H
#define NH_LANE_SYSTEM_H
/* The sizes of a system. Code that is compiled for one system replaces this text
 * (discrete/lanes.py). */
#define N_X 1      /* numbers of a state */
#define N_U 1      /* inputs */
#define N_P 1      /* parameters, and the step h */
#define N_Z 1      /* unknowns */
#define N_DOMAIN 1 /* numbers that must be positive after a step */
#endif
