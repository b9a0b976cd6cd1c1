/* Step and first derivatives of an exported model: all memory is on the stack of a call. */
#include "workspace.h"
#include "stepper.c"

enum { N_FRACTIONS = sizeof FRACTIONS / sizeof *FRACTIONS };

/* The workspace of a step from x under u. */
static void prepare_step(struct room *room, double **a, const double *x, const double *u)
{
    prepare(room, a);
    memcpy(room->x, x, sizeof(double) * NX);
    if (NU) memcpy(room->u, u, sizeof(double) * NU);
}

/* The steps of a room. */
static struct stepper stepper_of(struct room *room, double *const *a)
{
    return (struct stepper){
        STEP,    a,        FRACTIONS,  room->x,    room->u,     room->p + NP - 1,
        room->z, room->x1, room->warm, room->rest, N_FRACTIONS, NX,
        NU,      NZ,       0,          0,
    };
}

int MODEL(step)(const double *x, const double *u, double *x1)
{
    struct room room;
    double *a[N_ARRAYS] = {0};
    prepare_step(&room, a, x, u);
    const struct stepper stepper = stepper_of(&room, a);
    const int status = nh_substeps(&stepper);
    if (status == CONVERGED) memcpy(x1, room.x1, sizeof(double) * NX);
    return status;
}

/* S (NDX, NDX + NU) becomes ab S, whose input stays: the chain rule over a substep. */
static void chain(const double *ab, double *S)
{
    enum { NAB = NDX + NU };
    double before[NDX * NAB];
    memcpy(before, S, sizeof before);
    for (int i = 0; i < NDX; ++i)
        for (int j = 0; j < NAB; ++j) {
            double sum = j < NDX ? 0.0 : ab[NAB * i + j];
            for (int k = 0; k < NDX; ++k) sum += ab[NAB * i + k] * before[NAB * k + j];
            S[NAB * i + j] = sum;
        }
}

int MODEL(linearize)(const double *x, const double *u, double *x1, double *A, double *B)
{
    enum { NAB = NDX + NU };
    struct room room;
    double *a[N_ARRAYS] = {0}, S[NDX * NAB], last[NZ + 1] = {0}, before[NZ + 1];
    prepare_step(&room, a, x, u);
    for (int i = 0; i < N_FRACTIONS; ++i) {
        if (i) { /* from the unknowns of the previous substeps */
            memcpy(room.x, room.x1, sizeof room.x);
            memcpy(before, last, sizeof before);
            memcpy(last, room.z, sizeof(double) * NZ);
            guess(NZ, i, FRACTIONS, last, before, room.z);
            room.warm[0] = 1.0;
        }
        room.p[NP - 1] = FRACTIONS[i] * PARAMETERS[NP - 1];
        const int status = LINEARIZE(STEP, a);
        if (status != CONVERGED) return status;
        if (i) chain(room.ab, S);
        else memcpy(S, room.ab, sizeof S);
    }
    for (int i = 0; i < NDX; ++i) {
        memcpy(A + NDX * i, S + NAB * i, sizeof(double) * NDX);
        if (NU) memcpy(B + NU * i, S + NAB * i + NDX, sizeof(double) * NU);
    }
    memcpy(x1, room.x1, sizeof(double) * NX);
    return CONVERGED;
}

void MODEL(local)(const double *x0, const double *x1, double *dx) { call_local(x0, x1, dx); }

void MODEL(retract)(const double *x, const double *dx, double *x1) { call_retract(x, dx, x1); }
