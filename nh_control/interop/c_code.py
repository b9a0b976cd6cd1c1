"""Export of a discrete system as C code without dependencies, for microcontrollers and C++
controllers. The code contains the step, derivatives, tracker and filter.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import casadi as ca
import numpy as np

from nh_control.control.estimation import KalmanFilter
from nh_control.control.feedback_law import FeedbackLaw
from nh_control.control.tracking import LqrTracker
from nh_control.discrete.engine import Engine
from nh_control.discrete.native_text import definitions, fixed_headers
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.workspace import Shapes
from nh_control.interop.c_interface import CInterface
from nh_control.multibody import kernel_layout, tree_engine
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.numerics.amalgamation import NATIVE, amalgamation
from nh_control.numerics.generated_c import static_source
from nh_control.numerics.identifiers import identifier

FOLDER = Path(__file__).parent / "native"
UNUSED = ("lam", "lam_z", "mu", "full", "g", "half", "hessian", "system", "slopes")
"""Workspace arrays that steps and first derivatives do not use."""
UNCALLED = ("derivatives_by_h",)
"""Joint functions that only derivatives with respect to parameters call."""
GENERATED_STATES = "states.c"
"""The file that computes states with generated functions. ROUTINES are called by their
addresses.
"""
ROUTINES = ("inertia",)
PRIVATE = re.compile(r"^(?:int|double|void|long long) ((?:nh|tree)_\w+)\(", re.MULTILINE)
"""Function definitions in the package's C files."""
SAME = 1e-12
"""Maximum difference between states or inputs that count as equal."""
QUIET = """#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter" /* of generated functions */
#endif
"""
TREE = """#undef __AVX512F__ /* memory is laid out for vectors of four numbers */
#undef __SANITIZE_ADDRESS__ /* and on the stack, without gaps between its arrays */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* GCC loses track at -O1 */
#endif
#endif
"""


@dataclass(frozen=True)
class CCode:
    """The C code for a discrete system: the texts of NAME.h, NAME.c and the example program
    NAME_example.c.
    """

    name: str
    header: str
    source: str
    example: str

    def write(self, folder: str | Path) -> list[Path]:
        """Write the three files into a folder, which is created if necessary, and return their
        paths. Raises OSError.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        texts = {".h": self.header, ".c": self.source, "_example.c": self.example}
        files = [Path(folder, self.name + ending) for ending in texts]
        for file, text in zip(files, texts.values()):
            file.write_text(text)
        return files


def export_c(
    dsys: DiscreteSystem,
    tracker: LqrTracker | None = None,
    kalman: KalmanFilter | None = None,
    name: str = "",
) -> CCode:
    """Export a discrete system with its parameter values as C code (C99). The code contains
    NAME_step; NAME_linearize, which computes exact A and B; NAME_state, which converts a
    configuration and velocity to a state, and NAME_velocity; NAME_local and NAME_retract; the
    extended Kalman filter NAME_predict and NAME_update, which measures configurations by default;
    and, for a tracker, NAME_track and NAME_target with the tracker's gain table (a single gain if
    the tracker holds one state) and disturbance estimate.

    The code uses the package's Newton iteration and tree kernel. Results are bitwise equal if the
    code is compiled without contraction (`-ffp-contract=off`, part of `-std=c99`) and with the
    same mathematical functions. All memory is on the caller's stack, and calls share no data.
    Unlike `DiscreteSystem.step`, a failed step is not repeated by continuation. `name` defaults to
    the system's name.

    Raises ValueError for an invalid name, for a tracker or filter for another system, for filters
    whose outputs depend on inputs, and for trackers for systems with holonomic constraints.
    """
    name = name or _c_name(dsys.system.name)
    if not re.fullmatch(r"[A-Za-z](_?[A-Za-z0-9])*", name):
        raise ValueError(
            f"{dsys}: the name {name!r} must consist of letters, digits and single _ between "
            "them, and begin with a letter"
        )
    if tracker is not None:
        _check_tracker(dsys, tracker)
    if kalman is None:
        kalman = KalmanFilter(dsys, np.eye(dsys.ndx), np.eye(dsys.system.space.nv))
    elif kalman.dsys is not dsys:
        raise ValueError(f"expected a filter of {dsys}, got one of {kalman.dsys}")
    elif kalman.takes_inputs:
        raise ValueError(
            f"{dsys}: measurements of NAME_update depend on the state alone; leave out outputs "
            "that depend on the inputs, such as accelerations"
        )
    law = None if tracker is None else _law(tracker)
    interface = CInterface(dsys, name, len(kalman.V), law)
    # functions for states and for the filter, which all systems have
    functions = _functions_of_states(dsys, kalman)
    engine = dsys.substep_engine
    if isinstance(engine, TreeEngine):
        engine = engine.exportable
    if isinstance(engine, TreeEngine):
        model = _tree_model(dsys, engine, name, functions)
    else:
        model = _generated_model(engine, name, functions)
    tables = _numbers(dsys) + (_law_text(law) if law else "")
    workspace = _sizes(interface) + model.workspace + tables
    files = ("model.c", model.states_file, *_tracker_files(law), "filter.c")
    step, linearize = model.routines
    named = f"#define STEP {step}\n#define LINEARIZE {linearize}\n"
    named += f"enum {{ N_ARRAYS = {model.n_arrays} }};\n"
    headers = {**model.headers, "room.h": f'#include "definitions.h"\n{named}{workspace}'}
    folders = (*model.folders, NATIVE, FOLDER)
    text = amalgamation([*model.files, *files], headers, folders, marked=False)
    # a prefix for every function, so that a program can contain several exported systems
    private = "".join(f"#define {f} {name}_{f}\n" for f in sorted({*PRIVATE.findall(text)}))
    parts = (QUIET, f'#include <stdint.h>\n\n#include "{name}.h"\n\n', private)
    top = f"/* {name}.c, written by nh_control; {name}.h explains it. */\n{model.top}"
    source = "".join([top, *parts, model.functions, text])
    return CCode(name, interface.header(kalman, tracker), source, interface.example(tracker))


@dataclass(frozen=True)
class _Model:
    """The parts that differ between engines: the generated functions, the C files and the headers
    that they include, the routines for step and linearization, and the C text of the `workspace`.
    The latter is `struct room` with the list of its `n_arrays` arrays.
    """

    functions: str
    files: tuple[str, ...]
    headers: dict[str, str]
    routines: tuple[str, str]
    n_arrays: int
    workspace: str
    states_file: str = GENERATED_STATES
    folders: tuple[Path, ...] = ()
    top: str = ""


def _functions_of_states(dsys: DiscreteSystem, kalman: KalmanFilter) -> list[ca.Function]:
    space = dsys.state_space
    x, x1, dx = (ca.SX.sym(n, k) for n, k in zip("xyd", (dsys.nx, dsys.nx, dsys.ndx)))
    local = ca.Function("local", [x, x1], [space.local(x, x1)])
    retract = ca.Function("retract", [x, dx], [space.retract(x, dx)])
    return [local, retract, *dsys.node_equations, *kalman.equations]


def _generated_model(engine: Engine, name: str, functions: list[ca.Function]) -> _Model:
    named = _by_name([*engine.functions, *functions])
    text = static_source(named, f"{name}_generated", routines=ROUTINES)
    first, blocks = engine.contact_blocks
    headers = fixed_headers(engine.sizes, engine.shapes, first, blocks)
    files = engine.step_file, "linearize.c"
    routines = engine.step_routine, "nh_linearize"
    workspace = _workspace(_sizes_of(engine.shapes))
    return _Model(text, files, headers, routines, len(engine.shapes), workspace)


def _tree_model(
    dsys: DiscreteSystem, engine: TreeEngine, name: str, functions: list[ca.Function]
) -> _Model:
    """The tree kernel, with the model as constant numbers."""
    kinds = engine.joint_functions
    shapes = dict(engine.shapes_at(dsys.parameter_values))
    # the model is a struct whose bits are written as integers, which C reproduces exactly
    words = np.asarray(shapes.pop("tree")).view(np.uint64)
    headers = {
        "definitions.h": definitions(tree_engine.ARRAYS),
        "tree_layout.h": kernel_layout.header(),
    }
    of_joints = {
        f"joint{i}_{f.name()}": f
        for i, kind in enumerate(kinds)
        for f in kind
        if f.name() not in UNCALLED
    }
    named = {**_by_name(functions), **of_joints}
    by_kernel = engine.node_functions is not None
    if by_kernel:  # the kernel computes states, without generated functions
        del named["state"], named["inertia"]
    routines = [*of_joints, *(() if by_kernel else ROUTINES)]
    text = static_source(named, f"{name}_generated", routines=routines)
    table = ", ".join(f"UINT64_C({word:#x})" for word in words)
    tree = f"static const uint64_t MODEL_WORDS[] = {{{table}}};\n"
    if kinds:
        calls = (
            f"{{{', '.join(_routine(f'joint{i}_{f.name()}', f.name()) for f in kind)}}}"
            for i, kind in enumerate(kinds)
        )
        tree += f"static const struct joint_functions JOINTS[] = {{{', '.join(calls)}}};\n"
    joints = "JOINTS" if kinds else "0"
    tree += f"static const struct tree_functions FUNCTIONS = {{{joints}, 0, 0}};\n"
    workspace = tree + _workspace(
        _sizes_of(shapes),
        "a[TREE] = (double *)MODEL_WORDS;\n    a[SYSTEM] = (double *)&FUNCTIONS;",
    )
    return _Model(
        text,
        ("kernel.c",),
        headers,
        ("tree_step", "tree_linearize"),
        len(tree_engine.ARRAYS),
        workspace,
        "tree_states.c" if by_kernel else GENERATED_STATES,
        (tree_engine.FOLDER,),
        TREE,
    )


def _c_name(name: str) -> str:
    """A valid prefix for C functions, which begins with a letter and has no consecutive
    underscores.
    """
    plain = re.sub("_+", "_", identifier(name)).strip("_")
    return plain if plain[:1].isalpha() else f"system_{plain}".strip("_")


def _by_name(functions: Iterable[ca.Function]) -> dict[str, ca.Function]:
    return {f.name(): f for f in functions}


def _routine(name: str, function: str) -> str:
    """C text of a `struct function`. Functions that are not called are left out."""
    return "{0, 0}" if function in UNCALLED else f"{{function_{name}, 0}}"


def _sizes_of(shapes: Shapes) -> dict[str, int]:
    """Lengths of the arrays in use."""
    # second derivatives and parameters need more arrays than steps
    used = (name for name in shapes if name not in UNUSED)
    return {name: int(np.prod(np.asarray(shapes[name], dtype=int))) for name in used}


def _workspace(sizes: dict[str, int], more: str = "") -> str:
    """C text of `struct room` with arrays of these lengths, and of a function that lists the
    arrays.
    """
    sizes = sizes | {"rest": sizes["x"] + 3 * sizes["z"]}
    fields = "".join(
        f"    {'int' if name == 'pivots' else 'double'} {name}[{max(n, 1)}];\n"
        for name, n in sizes.items()
    )
    listed = "".join(
        f"    a[{name.upper()}] = {'(double *)' if name == 'pivots' else ''}room->{name};\n"
        for name in sizes
        if name != "rest"
    )
    return (
        f"struct room {{\n{fields}}};\n\n"
        f"static void lay_out(struct room *room, double **a)\n{{\n{listed}    {more}\n}}\n\n"
    )


def _sizes(interface: CInterface) -> str:
    d, n = interface.dsys, interface.n_measured
    sizes = {"NX": d.nx, "NU": d.nu, "NP": len(d.parameter_values), "NDX": d.ndx, "NE": n}
    system, space = d.system, d.system.space
    sizes |= {"NZ": d.method.nz, "NQ": space.nq, "NV": space.nv, "NW": space.nw}
    sizes |= {"NRHO": system.nrho, "N_PRESCRIBED": len(system.prescribed)}
    sizes |= {"N_HOLONOMIC": system.n_holonomic_constraints, "N_REDUNDANT": system.n_redundant}
    listed = ", ".join(f"{key} = {value}" for key, value in sizes.items())
    return f"#define MODEL(function) {interface.name}_##function\n\nenum {{ {listed} }};\n\n"


def _numbers(dsys: DiscreteSystem) -> str:
    return table("PARAMETERS", dsys.parameter_values) + table("FRACTIONS", dsys.method.substeps)


def table(name: str, values: object) -> str:
    """C text of a constant array."""
    numbers = np.ravel(np.asarray(values, dtype=float))
    listed = ", ".join(map(_number, numbers)) or "0.0"
    return f"static const double {name}[] = {{{listed}}};\n"


def _number(value: float) -> str:
    """The shortest decimal number that C reads as the same bits."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))


def _law(tracker: LqrTracker) -> FeedbackLaw:
    """A tracker's law. Its tables have one row if the tracker holds one state."""
    law = tracker.law
    # a constant reference that is held needs only one gain
    at_rest = (np.abs(part - part[-1]).max() <= SAME for part in (law.targets, law.feedforward))
    if not (law.hold and all(at_rest)):
        return law
    # a step needs the targets at its two nodes
    return replace(
        law,
        targets=law.targets[[-1, -1]],
        feedforward=law.feedforward[-1:],
        K=law.K[-1:],
        K_d=None if law.K_d is None else law.K_d[-1:],
    )


def _tracker_files(law: FeedbackLaw | None) -> tuple[str, ...]:
    if law is None:
        return ()
    return ("linear_tracker.c" if law.K_d is None else "integral_tracker.c",)


def _law_text(law: FeedbackLaw) -> str:
    """C text of a law's tables."""
    tables = {"TARGETS": law.targets, "FEEDFORWARD": law.feedforward}
    tables |= {"GAINS": law.K, "LIMITS": law.limits}
    text = f"enum {{ STEPS = {len(law.feedforward)}, HOLD = {int(law.hold)} }};\n"
    if law.K_d is not None:
        text += f"static const double DISTURBANCE_GAIN = {law.gain!r};\n"
        tables["DISTURBANCE_GAINS"] = law.K_d
    return text + "".join(itertools.starmap(table, tables.items()))


def _check_tracker(dsys: DiscreteSystem, tracker: LqrTracker) -> None:
    if tracker.dsys is not dsys:
        raise ValueError(f"expected a tracker of {dsys}, got one of {tracker.dsys}")
    if dsys.system.n_holonomic_constraints:
        raise ValueError(
            f"{tracker}: C code has no tracker for systems with holonomic constraints, because "
            "parts of their momenta cannot be measured; export without the tracker"
        )
