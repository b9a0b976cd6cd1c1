/* Whole steps and trajectories around nh_step. The step h is the last parameter. */

/* Steps by `n` fractions of h one after another, from a[X] to a[X1]; a[X] becomes the start of the last of them, a[Z] the unknowns of the first. */
int nh_substeps(double *const *a, const double *fractions, int n)
{
    double *h = a[P] + N_P - 1;
    const double whole = *h;
    double first[N_Z + 1];
    int status = CONVERGED;
    for (int i = 0; i < n && status == CONVERGED; ++i) {
        if (i) memcpy(a[X], a[X1], sizeof(double) * N_X);
        *h = fractions[i] * whole;
        status = nh_step(a);
        if (!i) memcpy(first, a[Z], sizeof(double) * N_Z);
    }
    if (status == CONVERGED && n > 1) memcpy(a[Z], first, sizeof(double) * N_Z);
    *h = whole;
    return status;
}

/* Steps number *done ... end - 1 from a[X], which moves along; every row of inputs is held for `every` steps, after which its row of states is the
 * state. Stops at the first step that fails, whose number is *done. */
int nh_simulate(double *const *a, const double *fractions, int n, long long *done, long long end, long long every, const double *inputs, double *states)
{
    for (; *done < end; ++*done) {
        const long long row = *done / every;
        memcpy(a[U], inputs + N_U * row, sizeof(double) * N_U);
        const int status = nh_substeps(a, fractions, n);
        if (status != CONVERGED) return status;
        memcpy(a[X], a[X1], sizeof(double) * N_X);
        memcpy(states + N_X * row, a[X], sizeof(double) * N_X);
    }
    return CONVERGED;
}
