/* Room for what a step needs in a[MEMORY], and the tree of a list of arrays. */

/* Doubles that the constraints need. */
static size_t constraint_memory(size_t n, size_t nq, size_t nv, size_t wides, size_t m)
{
    const size_t parts = n * sizeof(Place) + nv * sizeof(Twist) + wides * sizeof(Node);
    return m ? (parts + m * sizeof(Held)) / sizeof(double) + nq + m * (7 * nv + 2 * m + 2) : 0;
}

/* Vectors lie best where cache lines begin. */
enum { LINE = 64 };

static double *next_line(const void *m)
{
    return (double *)(((size_t)m + LINE - 1) / LINE * LINE);
}

/* Doubles that joints that others follow need; `all`: rates of all joints. */
static size_t shared_memory(size_t all, size_t leaders)
{
    return leaders ? leaders * (4 * all + leaders + 2) + all : 0;
}

/* Doubles that rows of springs and dampers need; `all`: rates of all joints. */
static size_t bond_memory(size_t all, size_t rows) { return rows * (5 * all + rows + 1); }

/* Doubles that a[MEMORY] must have room for; bodies, coordinates and rates of all joints, joints
 * of several coordinates, constraints, joints that others follow, rows of springs and dampers,
 * numbers for the derivatives of these and wrenches. */
long long tree_memory(int n, int nq, int nv, int wides, int m, int leaders, int bonds, int changed)
{
    return changed + bond_memory(nv, bonds) + 12ll * (nv + m) +
           constraint_memory(n, nq, nv, wides, m) + shared_memory(nv, leaders) +
           (long long)(n * sizeof(Body) + nv * sizeof(Row) + wides * sizeof(Wide) +
                       (size_t)(28 * n + 3 * nv) * sizeof(vn) + n + 3 * LINE) /
               sizeof(double) +
           1;
}

/* Doubles of a joint in a[TREE]. */
int tree_joint_size(void) { return sizeof(Joint) / sizeof(double); }

/* Places of the constraints' arrays, from m on; the end of them. */
static double *constraint_room(Tree *t, int wides, double *m)
{
    t->places = (Place *)m;
    t->motions = (Twist *)(t->places + t->n);
    t->nodes = (Node *)(t->motions + t->all);
    t->holds = (Held *)(t->nodes + wides);
    m = (double *)(t->holds + t->m);
    const size_t rows = (size_t)t->m * t->nv;
    const size_t m_m = (size_t)t->m * t->m;
    double **const arrays[] = {&t->end,    &t->G0, &t->sizes, &t->G1,      &t->Y,
                               &t->by_lam, &t->ab, &t->schur, &t->replies, &t->begun};
    const size_t sizes[] = {t->nq, rows, rows, rows, rows, rows, 2 * rows, m_m, m_m, t->m};
    for (int i = 0; i < 10; m += sizes[i++]) *arrays[i] = m;
    t->order = (int *)m;
    return m + t->m;
}

/* The same of joints that others follow. */
static double *shared_room(Tree *t, double *m)
{
    const size_t rows = (size_t)t->leaders * t->all;
    double **const arrays[] = {&t->Y_shared, &t->by_shared, &t->ab_shared, &t->shared, &t->met};
    const size_t sizes[] = {rows, rows, 2 * rows, (size_t)t->leaders * t->leaders, t->all};
    for (int i = 0; i < 5; m += sizes[i++]) *arrays[i] = m;
    t->lead = (int *)m;
    t->shared_order = t->lead + t->leaders;
    for (int i = 0, a = 0; i < t->n; ++i)
        if (t->joints[i].prescribed == SHARED) t->lead[a++] = (int)t->joints[i].v;
    return m + 2 * t->leaders;
}

/* The same of springs and dampers. */
static double *bond_room(Tree *t, double *m)
{
    const size_t rows = 3 * (t->springs + t->dampers);
    double **const arrays[] = {&t->before, &t->after, &t->by_z, &t->by_q, &t->reply};
    for (int i = 0; i < 5; ++i, m += rows * t->all) *arrays[i] = m;
    t->bonded = m;
    t->bonded_order = (int *)(m + rows * rows);
    return m + rows * rows + rows;
}

static Tree tree_at(double *const *a)
{
    const Header *s = TREE_OF(a);
    Tree t = {.n = (int)s->n,
              .nq = (int)s->nq,
              .nv = (int)s->nv,
              .nz = (int)s->nz,
              .nu = (int)(s->nu - s->nv + s->nz),
              .m = (int)s->m,
              .leaders = (int)s->leaders,
              .pushes = (int)s->pushes,
              .plane = (int)s->plane,
              .springs = (int)s->springs,
              .dampers = (int)s->dampers,
              .all = (int)(s->nv + s->followers),
              .left = s->left,
              .gravity = s->gravity};
    t.h = t.span = a[P][N_P - 1];
    t.k = 0.5 * t.h;
    t.joints = (const Joint *)(s + 1);
    t.actuated = (const double *)(t.joints + t.n);
    t.constraints = (const Constraint *)(t.actuated + t.nu);
    t.push = (const Push *)(t.constraints + t.m);
    t.bonds = (const Bond *)(t.push + t.pushes);
    t.functions = (const Functions *)(t.bonds + t.springs + t.dampers);
    t.q = a[X];
    t.rho = t.q + t.nq;
    t.u = a[U];
    double *m = a[MEMORY];
    double **const vectors[] = {&t.r,  &t.size,  &t.known, &t.force,   &t.low,     &t.high,
                                &t.at, &t.trial, &t.dz,    &t.weights, &t.reached, &t.pushed};
    for (int i = 0; i < 12; ++i, m += t.all + t.m) *vectors[i] = m;
    t.bodies = (Body *)next_line(m);
    t.rows = (Row *)(t.bodies + t.n);
    t.wides = (Wide *)(t.rows + t.all);
    m = (double *)(t.wides + (int)s->wides);
    if (t.m) m = constraint_room(&t, (int)s->wides, m);
    if (t.leaders) m = shared_room(&t, m);
    m = bond_room(&t, m);
    t.lanes = (vn *)next_line(m);
    t.changed = (double *)(t.lanes + 28 * t.n + 3 * t.all) + t.n / 8 + 1;
    return t;
}
