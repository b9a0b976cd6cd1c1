/* The LQR tracker of an exported model, u = u_d - K local(x_d, x) within the limits. */
#include "room.h"

void MODEL(track)(long k, const double *x, double *u)
{
    const long node = k < STEPS ? k : STEPS, row = k < STEPS ? k : STEPS - 1;
    double error[NDX];
    call_local(TARGETS + NX * node, x, error);
    for (int i = 0; i < NU; ++i) {
        if (k >= STEPS && !HOLD) { /* past the end: no forces, prescribed coordinates stay */
            u[i] = i < NU - N_PRESCRIBED ? 0.0 : x[NQ - NU + i];
        } else { /* the sum in the order of the indices */
            const double *K = GAINS + (long)NDX * (NU * row + i);
            double feedback = K[0] * error[0];
            for (int j = 1; j < NDX; ++j) feedback += K[j] * error[j];
            u[i] = FEEDFORWARD[NU * row + i] - feedback;
        }
        if (u[i] < LIMITS[2 * i]) u[i] = LIMITS[2 * i];
        if (u[i] > LIMITS[2 * i + 1]) u[i] = LIMITS[2 * i + 1];
    }
}
