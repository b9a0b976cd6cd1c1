/* The tracker without a disturbance estimate. */
#include "tracker.c"

void MODEL(track)(long k, const double *x, double *u)
{
    double error[NDX];
    follow(k, x, error, u);
    limit(u);
}
