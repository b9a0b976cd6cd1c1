"""The struct that Python passes to the native solver. Its fields are declared only here.

The header `native/layout.h` declares the struct in C; `python test/core/test_native_files.py`
writes this header.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

from nh_control.discrete.native_text import macros
from nh_control.numerics.virtual_machine import FunctionData

FILTER = 200
"""Number of entries in the filter."""
MIXED = 3
"""Number of earlier steps with which a step without second derivatives is mixed."""
MAX_THREADS = 64
"""Maximum number of threads that share the steps."""


class Outcome(IntEnum):
    """The result of a call of the native solver."""

    GOES_ON = 0
    OPTIMAL = 1
    STEP_FAILED = 2
    NOT_CONVEX = 3
    NO_STEP = 4
    INFEASIBLE = 5


SIZES = {
    "n_x": "numbers of a state with its constants",
    "n_dx": "its local coordinates",
    "n_u": "inputs",
    "n_y": "variables (dx, du) of a node",
    "n_step_x": "numbers of a state of the steps",
    "n_step_dx": "its local coordinates",
    "n_parameters": "of the steps that are unknowns",
    "n_columns": "variables of derivatives: (dx, du), and all parameters with n_parameters",
    "n_node": "parameters of a node",
    "n_i": "inequalities: limits of inputs and rows",
    "n_rows": "rows with inputs, then of states alone, and of constants",
    "n_mixed": "rows with inputs: at all nodes but the last",
    "n_constant": "the last rows, of constants: at the last node",
    "n_end": "conditions at the last node",
}
COUNTS = {
    "steps": "N",
    "nz": "unknowns of a step",
    "curved": "whether second derivatives of steps and rows count",
    "reuses": "whether a trial's steps are linearized without being solved again",
    "entries": "of the filter",
    "failures": "consecutive searches without a step",
    "mixed": "stored changes of steps for mixing, -1 if `newton` is no step before",
    "n_free": "moves of the first state that are free",
    "from_first": "whether rows of states also hold at the first node",
    "failed_at": "node of the step that failed",
    "threads": "that share the steps",
}
FUNCTIONS = {
    "retract": "(x, dx, p) -> x",
    "local": "(x0, x1, p) -> dx",
    "transport": "(x0, x1) -> slope of local(x0, retract(x1, dx)) at dx = 0",
    "stage": "(x, u, w) -> cost",
    "terminal": "(x, w) -> cost",
    "stage_derivatives": "(x, u, w) -> gradient, Hessian",
    "terminal_derivatives": "(x, w) -> gradient, Hessian",
    "rows": "(x, u, w) -> values, which with `offset` are to be >= 0",
    "row_slopes": "(x, u, w) -> (n_rows, n_y)",
    "row_curvature": "(x, u, w, lam) -> (n_y, n_y)",
    "end": "(x, goal) -> values that are to be 0 at the last node",
    "end_derivatives": "(x, goal, nu) -> slope (n_end, n_dx), curvature in dx",
}
"""Functions of the problem."""
STEPS = {
    "step": "x, u, warm z -> z, x1, in the arrays",
    "linearize": "and [A B]",
    "hessian": "and the second derivative contracted with the costate",
}
"""Routines of a step, which take the list of the step's arrays."""
ARRAYS = {
    "x": "(N + 1, n_x) states",
    "u": "(N, n_u) inputs",
    "w": "(N + 1, n_node) parameters of the nodes",
    "z": "(N, nz) unknowns of the steps",
    "y": "(N, n_x) ends of the steps",
    "x_trial": "",
    "u_trial": "",
    "z_trial": "",
    "y_trial": "",
    "gap_trial": "",
    "c_trial": "",
    "e_trial": "",
    "sizes": "(nz) of the terms of a step, on which its accuracy depends",
    "no_input": "(n_u) zeros",
    "lower": "(n_u) limits of inputs",
    "upper": "(n_u)",
    "offset": "(n_rows) of the rows: their bounds",
    "goal": "(n_step_x) state at the end",
    "weight": "(n_i) of violation, infinite for a hard row",
    "least_weight": "(n_i) of hard rows whose weight may grow, 0 of others",
    "pi": "(N, n_dx) costates",
    "nu": "(n_end) multipliers at the end",
    "ab": "(N, n_dx, n_y) [A B]",
    "dz": "(N, nz, n_columns) derivatives of the unknowns",
    "gap": "(N, n_dx) local(x_{k+1}, f(x_k, u_k)) + drift",
    "drift": "(n_dx) displacement of every step beyond the model's",
    "drift_next": "(n_dx) its estimate when the state arrives",
    "state": "(n_x) that arrives",
    "moves": "(n_dx, n_free) moves of the first state that are free",
    "places": "(n_parameters) of the unknown parameters among the step's",
    "start": "(n_dx) how far the first state is to move",
    "g": "(N, n_y) gradients of the cost",
    "h": "(N, n_y, n_y) its Hessians",
    "g_end": "(n_dx)",
    "h_end": "(n_dx, n_dx), with the curvature of the conditions there",
    "bend": "(N, n_y, n_y) curvature of steps and rows",
    "c": "(N + 1, n_i) values of the inequalities",
    "slopes": "(N + 1, n_rows, n_y) of the rows",
    "e": "(n_end) values of the end condition",
    "e_slope": "(n_end, n_dx)",
    "dx": "(N + 1, n_dx) Newton's step",
    "du": "(N, n_u)",
    "pi_next": "(N, n_dx)",
    "nu_next": "(n_end)",
    "K": "(N, n_u, n_dx) gains",
    "feed": "(N, n_u) feedforward",
    "L": "(N, n_u, n_u) factors of the Hessian with respect to the inputs",
    "P": "(N, n_dx, n_dx) Hessians of the cost-to-go behind each step",
    "p": "(N, n_dx) its gradients",
    "P_start": "(n_dx, n_dx) Hessian of the cost-to-go at the first node",
    "p_start": "(n_dx) its gradient at the first node",
    "s": "(N + 1, n_i) slacks of the inequalities",
    "t": "(N + 1, n_i) violations of soft rows",
    "lam": "(N + 1, n_i) multipliers",
    "aim_s": "(N + 1, n_i) targets of s lam",
    "aim_t": "(N + 1, n_i) targets of t (weight - lam)",
    "ds": "",
    "dt": "",
    "dl": "",
    "s_trial": "",
    "t_trial": "",
    "total": "step that was taken, in real time a sum: (N + 1, n_y), then costates",
    "newton": "Newton's step in the same order",
    "step_changes": "(MIXED, ...) changes of `newton` between iterates",
    "point_changes": "(MIXED, ...) these and those of the iterates",
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


class Worker(ctypes.Structure):
    """`struct worker` of layout.h."""

    _fields_ = [
        ("arrays", ctypes.c_void_p),
        ("room", ctypes.c_void_p),
        *((name, FunctionData) for name in FUNCTIONS),
    ]
    buffers: Any


class Horizon(ctypes.Structure):
    """`struct horizon` of layout.h."""

    _fields_ = [
        *((name, ctypes.c_int) for name in SIZES),
        *((name, ctypes.c_long) for name in COUNTS),
        *((name, ctypes.c_void_p) for name in ("workers", *STEPS, *ARRAYS)),
        *((name, ctypes.c_double) for name in NUMBERS),
    ]


def sizes_header() -> str:
    """The text of `native/sizes.h`."""
    return (
        "#ifndef NH_OPTIMAL_SIZES_H\n#define NH_OPTIMAL_SIZES_H\n"
        "/* Written by control/optimal/layout.py: `sizes_header`. Sizes of a `struct horizon` o;\n"
        " * where the solver is compiled for a problem, constants take the place of this file. */"
        "\n\n#define SIZES_ARE_DATA\n"
        f"{macros({name.upper(): f'(o->{name})' for name in SIZES})}#endif\n"
    )


def header() -> str:
    """The text of `native/layout.h`."""
    worker = ["    double *const *arrays; /* of a step's workspace */"]
    worker += ["    double *room; /* scratch memory of n_x + n_i + (n_dx + n_y)^2 numbers */"]
    worker += [f"    struct function {name}; /* {text} */" for name, text in FUNCTIONS.items()]
    lines = [f"    int {name}; /* {text} */" for name, text in SIZES.items()]
    lines += [f"    long {name}; /* {text} */" for name, text in COUNTS.items()]
    lines += ["    const struct worker *workers; /* of all threads, this one's first */"]
    lines += [f"    {name}_routine {name}; /* {text} */" for name, text in STEPS.items()]
    for name, text in ARRAYS.items():
        lines.append(f"    double *{name};" + (f" /* {text} */" if text else ""))
    lines += [f"    double {name}; /* {text} */" for name, text in NUMBERS.items()]
    fields, of_worker = "\n".join(lines), "\n".join(worker)
    return (
        "#ifndef NH_OPTIMAL_LAYOUT_H\n#define NH_OPTIMAL_LAYOUT_H\n"
        "/* Written by control/optimal/layout.py: `header`. */\n"
        '#include "function.h"\n\n'
        "typedef int (*step_routine)(double *const *);\n"
        "typedef int (*linearize_routine)(step_routine, double *const *);\n"
        "typedef int (*hessian_routine)(linearize_routine, step_routine, double *const *);\n\n"
        f"#define FILTER {FILTER}\n"
        f"#define MIXED {MIXED}\n"
        f"#define MAX_THREADS {MAX_THREADS}\n"
        f"enum outcome {{ {', '.join(outcome.name for outcome in Outcome)} }};\n\n"
        "/* The data of each thread. */\n"
        f"struct worker {{\n{of_worker}\n}};\n\n"
        f"struct horizon {{\n{fields}\n}};\n#endif\n"
    )
