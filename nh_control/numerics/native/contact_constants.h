#ifndef NH_CONTACT_CONSTANTS_H
#define NH_CONTACT_CONSTANTS_H
/* Constants of contact problems, of the start of a step with contacts, and of the central path. */

#define CONE_FLOOR 1e-15 /* least (beta^2 - |g|^2) / beta^2 that round-off leaves */

/* What is known of a contact problem's impulses: nothing, those of the last problem, or the
 * velocities w_n of bodies that do not move, which are those of the last step. */
enum guess { UNKNOWN, LAST_IMPULSES, STARTS_AT_GAPS };

/* A contact problem. */
#define CONTACT_ITERATIONS 100
#define CONTACT_CLOSE 1e-4      /* relative distance from the path at which the iteration ends */
#define CONTACT_ROUND_OFF 3e-14 /* part of the largest beta psi that its round-off may reach */
#define CONTACT_FEASIBLE 1e-11  /* error of w = G x + b, relative to the largest velocity */
#define CONTACT_CENTERING 0.3   /* part of the mean product that an iteration aims at */
#define CONTACT_LEAST 0.01      /* least opening velocity of a start, by the largest closing one */
#define CONTACT_NEAR 100.0      /* multiple of kappa below which all products are near the path */
#define CONTACT_BACK 0.95       /* part of the way to the boundary that a step takes */
#define CONTACT_HELD 0.5        /* part of the closing velocity that impulses of gaps may leave */
#define CONTACT_STILL 0.02      /* the same for bodies that hardly move */
#define CONTACT_SHORT 0.2       /* step below which a guess is rejected */

/* Newton's method on the dynamics, with a contact problem in each iteration. */
#define CONTACT_OUTER_ITERATIONS 30
#define CONTACT_SETTLED 1e-10  /* relative change of the unknowns at which it ends */
#define CONTACT_STALLED 1e-6   /* the same if the changes no longer shrink */
#define CONTACT_QUADRATIC 1e-3 /* the same, from which on changes are predicted */
#define CONTACT_FORETOLD 1e-11 /* predicted next change at which one correction remains */
#define CONTACT_ROUNDED 1e-17  /* and at which none remains */
#define CONTACT_CORRECTED 1.0  /* and from which on corrections use the same factors */
#define CONTACT_FAST 1e-2      /* ratio of successive changes at which these go on */
#define CONTACT_ROUND 1e-13    /* predicted next change of these that is round-off */
#define CONTACT_FAR 1e6        /* energy of an opening velocity, by kappa, of a far contact */
#define CONTACT_CORRECTIONS 3  /* Newton's corrections, the last of which must be round-off */

/* The central path. */
#define PATH_HIGHER 1e8    /* factor of the kappa at which it starts */
#define PATH_STEPS 300     /* steps along it */
#define PATH_FIRST 2.0     /* length of the first step */
#define PATH_LONGEST 4.0   /* of the longest */
#define PATH_LEAST 1e-5    /* of the shortest */
#define PATH_SHORTER 0.3   /* factor of the length after a step that failed */
#define PATH_LONGER 2.0    /* and after one of at most PATH_EASY corrections */
#define PATH_EASY 3        /* corrections up to which the next step is longer */
#define PATH_CORRECTIONS 8 /* corrections at which a step has failed */
#define PATH_HALVINGS 30   /* halvings of a step, which must end inside of all cones */
#define PATH_CLOSE 1e-3    /* corrections that end Newton's method, by sizes of the unknowns */
#define PATH_SMALL 1e-3    /* least size of an impulse, relative to the largest */
#define PATH_RETURN 30     /* steps from a guess to the path */
#endif
