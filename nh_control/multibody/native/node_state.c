/* Momenta, velocities and energy at a node: those of a step that takes no time. */

static Tree node_at(double *const *a)
{
    const Tree t = tree_at(a);
    memset(t.force, 0, sizeof(double) * t.all);
    return node_of(&t);
}

/* Momenta rho (nv) of the configuration in a[X] with the velocity in a[Z], into a[X1]. */
void tree_momentum(double *const *a)
{
    const Tree t = node_at(a);
    residual(&t, a[Z], 1.0);
    for (int i = 0; i < t.n; ++i) {
        const Joint *j = t.joints + i;
        const int v = (int)j->v, n = (int)j->size;
        if (v >= t.nv) continue;
        if (j->kind < MANIFOLD) {
            a[X1][t.nq + v] = t.high[v];
            continue;
        }
        Wide *w = t.wides + (int)j->wide;
        joint_along(&t, j, w);
        for (int l = 0; l < n; ++l)
            a[X1][t.nq + v + l] = power((Twist){w->bm, w->bf}, twist_of(w->Sz, n, l));
    }
    if (t.leaders) gather(&t, 0.0, 1.0, a[X1] + t.nq);
}

/* The velocity of the state in a[X], into a[Z]. */
int tree_velocity(double *const *a)
{
    const Tree t = tree_at(a);
    memset(t.force, 0, sizeof(double) * t.all);
    start_constraints(&t);
    return velocity_of(&t, a[Z]);
}

/* Energy (J) of the configuration in a[X] with the velocity in a[Z]: gravity's by the heights of
 * the frames, T = v . p / 2. */
double tree_energy(double *const *a)
{
    const Tree t = node_at(a);
    double energy = 0.5 * TREE_OF(a)->held;
    tree_momentum(a);
    for (int i = 0; i < t.nv; ++i) energy += 0.5 * a[Z][i] * a[X1][t.nq + i];
    for (int i = 0; i < t.n; ++i) {
        const Joint *j = t.joints + i;
        Body *b = t.bodies + i;
        b->depth = (j->parent < 0 ? 0.0 : t.bodies[(int)j->parent].depth) + dot(t.gravity, b->p);
        energy -= j->mass * b->depth + dot(b->first, t.gravity);
        if (j->kind < MANIFOLD) {
            const double q = t.q[(int)j->q];
            energy += 0.5 * j->stiffness * q * q - j->pull * q;
        }
    }
    for (int i = 0; i < t.springs; ++i) {
        const Bond *c = t.bonds + i;
        const v4 s = stretch(&t, c);
        const double longer = sqrt(dot(s, s)) - c->rest;
        energy += 0.5 * c->stiffness * longer * longer;
    }
    return energy;
}
