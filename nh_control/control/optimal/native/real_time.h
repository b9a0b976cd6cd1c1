#ifndef NH_REAL_TIME_H
#define NH_REAL_TIME_H
/* The phases of a real-time iteration. */
#include "layout.h"

int nh_ocp_weigh(struct horizon *o);
int nh_ocp_shift(struct horizon *o, int count);
int nh_ocp_prepare(struct horizon *o);
int nh_ocp_feedback(struct horizon *o, int most);
#endif
