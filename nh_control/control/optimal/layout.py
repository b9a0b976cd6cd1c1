"""The record that Python hands to the native solver: every field once, for both.

`native/layout.h` declares it for C; `python test/core/test_native_files.py` writes that header.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

FILTER = 200
"""Entries of the filter."""


class Outcome(IntEnum):
    """How a call of the native solver ends."""

    GOES_ON = 0
    OPTIMAL = 1
    STEP_FAILED = 2
    NOT_CONVEX = 3
    NO_STEP = 4
    INFEASIBLE = 5


COUNTS = {
    "steps": "N",
    "nz": "unknowns of a step",
    "curved": "whether second derivatives of steps and rows count",
    "reuses": "whether a trial's steps are linearized without being solved again",
    "entries": "of the filter",
    "failures": "searches without a step in a row",
    "n_free": "moves of the first state that are free",
    "from_first": "whether rows of states hold at the first node, too",
    "failed_at": "node of the step that failed",
    "threads": "that share the steps",
}
ROUTINES = {
    "retract": (3, 1, "(x, dx, p) -> x"),
    "local": (3, 1, "(x0, x1, p) -> dx"),
    "transport": (2, 1, "(x0, x1) -> slope of local(x0, retract(x1, dx)) at dx = 0"),
    "stage": (3, 1, "(x, u, w) -> cost"),
    "terminal": (2, 1, "(x, w) -> cost"),
    "stage_derivatives": (3, 2, "(x, u, w) -> gradient, Hessian"),
    "terminal_derivatives": (2, 2, "(x, w) -> gradient, Hessian"),
    "rows": (3, 1, "(x, u, w) -> values that are to be >= 0"),
    "row_slopes": (3, 1, "(x, u, w) -> (N_ROWS, N_Y)"),
    "row_curvature": (4, 1, "(x, u, w, lam) -> (N_Y, N_Y)"),
    "end": (1, 1, "(x) -> values that are to be 0 at the last node"),
    "end_derivatives": (2, 2, "(x, nu) -> slope (N_END, N_DX), curvature (N_DX, N_DX)"),
}
"""Functions of the problem: numbers of their arguments and results."""
STEPS = {
    "step": "x, u, warm z -> z, x1, in the arrays",
    "linearize": "and [A B]",
    "hessian": "and the second derivative contracted with the costate",
}
"""Routines of a step on the list of arrays."""
ARRAYS = {
    "x": "(N + 1, N_X) states",
    "u": "(N, N_U) inputs",
    "w": "(N + 1, N_NODE) parameters of the nodes",
    "z": "(N, nz) unknowns of the steps",
    "y": "(N, N_X) ends of the steps",
    "x_trial": "",
    "u_trial": "",
    "z_trial": "",
    "y_trial": "",
    "gap_trial": "",
    "c_trial": "",
    "e_trial": "",
    "lower": "(N_U) limits of inputs",
    "upper": "(N_U)",
    "weight": "(N_I) of violation, infinite for a hard row",
    "least_weight": "(N_I) of hard rows whose weight may grow, 0 of others",
    "pi": "(N, N_DX) costates",
    "nu": "(N_END) multipliers at the end",
    "ab": "(N, N_DX, N_Y) [A B]",
    "gap": "(N, N_DX) local(x_{k+1}, f(x_k, u_k)) + drift",
    "drift": "(N_DX) displacement of every step beyond the model's",
    "drift_next": "(N_DX) its estimate when the state arrives",
    "state": "(N_X) that arrives",
    "moves": "(N_DX, n_free) moves of the first state that are free",
    "places": "(N_FREE) of the parameters that are unknowns among the step's",
    "start": "(N_DX) how far the first state is to move",
    "g": "(N, N_Y) gradients of the cost",
    "h": "(N, N_Y, N_Y) its Hessians",
    "g_end": "(N_DX)",
    "h_end": "(N_DX, N_DX), with the curvature of the conditions there",
    "bend": "(N, N_Y, N_Y) curvature of steps and rows",
    "c": "(N + 1, N_I) values of the inequalities",
    "slopes": "(N + 1, N_ROWS, N_Y) of the rows",
    "e": "(N_END) values of the end condition",
    "e_slope": "(N_END, N_DX)",
    "dx": "(N + 1, N_DX) Newton's step",
    "du": "(N, N_U)",
    "pi_next": "(N, N_DX)",
    "nu_next": "(N_END)",
    "K": "(N, N_U, N_DX) gains",
    "feed": "(N, N_U) feedforward",
    "L": "(N, N_U, N_U) factors of the Hessian by the inputs",
    "P": "(N, N_DX, N_DX) Hessians of the cost-to-go behind each step",
    "p": "(N, N_DX) its gradients",
    "P_start": "(N_DX, N_DX) Hessian of the cost-to-go at the first node",
    "p_start": "(N_DX) its gradient at the first node",
    "s": "(N + 1, N_I) slacks of the inequalities",
    "t": "(N + 1, N_I) violations of soft rows",
    "lam": "(N + 1, N_I) multipliers",
    "aim_s": "(N + 1, N_I) targets of s lam",
    "aim_t": "(N + 1, N_I) targets of t (weight - lam)",
    "ds": "",
    "dt": "",
    "dl": "",
    "s_trial": "",
    "t_trial": "",
    "total": "(N + 1, N_Y) sum of the steps of a real-time iteration",
    "filter": "(FILTER, 2) violations and merits",
}
NUMBERS = {
    "mu": "barrier",
    "mu_end": "its last value",
    "tolerance": "of the errors at the optimum",
    "damping": "added to the Hessian",
    "last_damping": "that made it convex",
    "widest": "violation that a trial may have",
    "narrow": "violation below which the merit must decrease",
    "violation": "1-norm of gaps and residuals",
    "cost": "without barrier and weights",
    "merit": "barrier function",
    "stationarity": "largest error of the Lagrangian's gradient",
    "complementarity": "largest product of slack and multiplier",
    "length": "of the last step",
}


class Horizon(ctypes.Structure):
    """`struct horizon` of layout.h."""

    _fields_ = [
        *((name, ctypes.c_long) for name in COUNTS),
        ("arrays", ctypes.c_void_p),
        ("workspaces", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in (*STEPS, *ROUTINES, *ARRAYS)),
        *((name, ctypes.c_double) for name in NUMBERS),
    ]


def header() -> str:
    """The text of `native/layout.h`."""
    lines = [f"    long {name}; /* {text} */" for name, text in COUNTS.items()]
    lines += ["    double *const *arrays; /* of a step's workspace */"]
    lines += ["    double *const *const *workspaces; /* of all threads, this one's first */"]
    lines += [f"    {name}_routine {name}; /* {text} */" for name, text in STEPS.items()]
    for name, (n_in, n_out, text) in ROUTINES.items():
        arguments = ", ".join(["const double *"] * n_in + ["double *"] * n_out)
        lines.append(f"    /* {text} */\n    int (*{name})({arguments});")
    for name, text in ARRAYS.items():
        lines.append(f"    double *{name};" + (f" /* {text} */" if text else ""))
    lines += [f"    double {name}; /* {text} */" for name, text in NUMBERS.items()]
    fields = "\n".join(lines)
    return (
        "#ifndef NH_OPTIMAL_LAYOUT_H\n#define NH_OPTIMAL_LAYOUT_H\n"
        "/* Written by control/optimal/layout.py: `header`. */\n\n"
        "typedef int (*step_routine)(double *const *);\n"
        "typedef int (*linearize_routine)(step_routine, double *const *);\n"
        "typedef int (*hessian_routine)(linearize_routine, step_routine, double *const *);\n\n"
        f"#define FILTER {FILTER}\n"
        f"enum outcome {{ {', '.join(outcome.name for outcome in Outcome)} }};\n\n"
        f"struct horizon {{\n{fields}\n}};\n#endif\n"
    )
