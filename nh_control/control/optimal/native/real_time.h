#ifndef NH_REAL_TIME_H
#define NH_REAL_TIME_H
/* The phases of a real-time iteration. */
#include "layout.h"

int ocp_shift(struct horizon *o, int count);
int ocp_prepare(struct horizon *o);
int ocp_feedback(struct horizon *o, int most);
#endif
