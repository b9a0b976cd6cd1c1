#ifndef NH_LANE_FUNCTIONS_H
#define NH_LANE_FUNCTIONS_H
/* The functions of a step in all lanes, see system.h. Code that is compiled for one system
 * replaces this text (discrete/lanes.py). */
#include "lanes.h"

void lane_start(const lanes *x, const lanes *u, const lanes *p, lanes *s, lanes *r, lanes *r_z);
void lane_residual(const lanes *x, const lanes *u, const lanes *z, const lanes *p, lanes *r);
void lane_jacobian(const lanes *x, const lanes *u, const lanes *z, const lanes *p, lanes *r_z);
void lane_readout(const lanes *x, const lanes *u, const lanes *z, const lanes *p, lanes *x1,
                  lanes *domain);
#endif
