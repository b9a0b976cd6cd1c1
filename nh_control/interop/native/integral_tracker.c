/* The tracker with a disturbance estimate, control/tracking.py: `memory` is whether the state of
 * this step was predicted, that state (NX), and the disturbance d of the momenta (NRHO). */
#include "tracker.c"

/* d += gain local(predicted, x), of the momenta. */
static void estimate(const double *x, double *memory)
{
    double innovation[NDX], *d = memory + 1 + NX;
    if (memory[0] == 0.0) return;
    call_local(memory + 1, x, innovation);
    for (int i = 0; i < NRHO; ++i) d[i] += DISTURBANCE_GAIN * innovation[NV + i];
}

void MODEL(track)(long k, const double *x, double *memory, double *u)
{
    double error[NDX], x1[NX], change[NDX] = {0}, *d = memory + 1 + NX;
    if (!follow(k, x, error, u)) {
        memset(memory, 0, sizeof(double) * (1 + NX + NRHO));
        limit(u);
        return;
    }
    estimate(x, memory);
    subtract_product(DISTURBANCE_GAINS, k < STEPS ? k : STEPS - 1, NU, NRHO, d, u);
    limit(u);
    /* the next state under the limited input: a saturated input does not wind d up */
    memory[0] = MODEL(step)(x, u, x1) == CONVERGED;
    memcpy(change + NV, d, sizeof(double) * NRHO);
    if (memory[0] != 0.0) call_retract(x1, change, memory + 1);
}
