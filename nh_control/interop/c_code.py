"""A discrete system as C code without dependencies: step, derivatives, tracker and filter for
microcontrollers and C++ controllers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from nh_control.control.estimation import KalmanFilter
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
OWN = ("model.c", "tracker.c", "filter.c")
UNUSED = ("lam", "lam_z", "mu", "full", "g", "half", "hessian", "system", "slopes")
"""Arrays of a workspace that steps and first derivatives do not need."""
UNCALLED = ("derivatives_by_h",)
"""Functions of joints for derivatives by parameters only."""
PRIVATE = re.compile(r"^(?:int|double|void|long long) ((?:nh|tree)_\w+)\(", re.MULTILINE)
"""Functions of the package's C files."""
SAME = 1e-12
"""Difference below which states and inputs are equal."""
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
    """The C code of a discrete system: the texts of NAME.h, NAME.c and of NAME_example.c, a
    program that shows their use.
    """

    name: str
    header: str
    source: str
    example: str

    def write(self, folder: str | Path) -> list[Path]:
        """Write the three files into a folder, which is made; returns their paths. Raises
        OSError.
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
    """C code (C99) of a discrete system at its parameters: NAME_step, NAME_linearize with exact A
    and B, NAME_local and NAME_retract, the extended Kalman filter NAME_predict and NAME_update,
    which measures configurations by default, and NAME_track of a tracker with its table of gains
    (one gain if it holds one state).

    Newton's iteration and the kernel of trees are the package's, and give the same bits if they
    are compiled without contraction (`-ffp-contract=off`, part of `-std=c99`) with the same
    mathematical functions. All memory is on the caller's stack; calls share nothing. A failed step
    has no further attempts by continuation, unlike `DiscreteSystem.step`. `name` is by default the
    system's.

    Raises ValueError for a name that C cannot have, for a tracker or filter of another system, for
    filters of outputs that depend on inputs, and for trackers with a disturbance estimate or of
    systems with holonomic constraints.
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
            f"{dsys}: NAME_update takes measurements that depend on the state alone; leave out "
            "outputs that depend on the inputs, as accelerations do"
        )
    table = None if tracker is None else GainTable.of(tracker)
    interface = CInterface(dsys, name, len(kalman.V), 0 if table is None else len(table.inputs))
    functions = _functions_of_states(dsys, kalman)
    files = OWN if tracker is not None else tuple(file for file in OWN if file != "tracker.c")
    engine = dsys.substep_engine
    if isinstance(engine, TreeEngine):
        engine = engine.exportable
    if isinstance(engine, TreeEngine):
        model = _tree_model(dsys, engine, name, functions)
    else:
        model = _generated_model(engine, name, functions)
    room = _sizes(interface) + model.room + _numbers(dsys) + (table.text() if table else "")
    step, linearize = model.routines
    named = f"#define STEP {step}\n#define LINEARIZE {linearize}\n"
    named += f"enum {{ N_ARRAYS = {model.n_arrays} }};\n"
    given = {**model.given, "room.h": f'#include "definitions.h"\n{named}{room}'}
    folders = (*model.folders, NATIVE, FOLDER)
    text = amalgamation([*model.files, *files], given, folders, marked=False)
    private = "".join(f"#define {f} {name}_{f}\n" for f in sorted({*PRIVATE.findall(text)}))
    parts = (QUIET, f'#include <stdint.h>\n\n#include "{name}.h"\n\n', private)
    top = f"/* {name}.c, written by nh_control; {name}.h explains it. */\n{model.top}"
    source = "".join([top, *parts, model.functions, text])
    return CCode(name, interface.header(kalman, tracker), source, interface.example(tracker))


@dataclass(frozen=True)
class _Model:
    """The differences between engines: generated functions, files and the texts that they include,
    the routines of step and linearization, and `struct room` with the list of `n_arrays` arrays.
    """

    functions: str
    files: tuple[str, ...]
    given: dict[str, str]
    routines: tuple[str, str]
    n_arrays: int
    room: str
    folders: tuple[Path, ...] = ()
    top: str = ""


def _functions_of_states(dsys: DiscreteSystem, kalman: KalmanFilter) -> list[ca.Function]:
    space = dsys.state_space
    x, x1, dx = (ca.SX.sym(n, k) for n, k in zip("xyd", (dsys.nx, dsys.nx, dsys.ndx)))
    local = ca.Function("local", [x, x1], [space.local(x, x1)])
    return [local, ca.Function("retract", [x, dx], [space.retract(x, dx)]), *kalman.equations]


def _generated_model(engine: Engine, name: str, functions: list[ca.Function]) -> _Model:
    text = static_source(_by_name([*engine.functions, *functions]), f"{name}_generated")
    given = fixed_headers(engine.sizes, engine.shapes, *engine.contact_blocks)
    files = engine.step_file, "linearize.c"
    routines = engine.step_routine, "nh_linearize"
    room = _room(_sizes_of(engine.shapes))
    return _Model(text, files, given, routines, len(engine.shapes), room)


def _tree_model(
    dsys: DiscreteSystem, engine: TreeEngine, name: str, functions: list[ca.Function]
) -> _Model:
    """The kernel of trees with its model as constant numbers."""
    kinds = engine.joint_functions
    shapes = dict(engine.shapes_at(dsys.parameter_values))
    words = np.asarray(shapes.pop("tree")).view(np.uint64)
    given = {
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
    text = static_source(named, f"{name}_generated", routines=of_joints)
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
    room = tree + _room(
        _sizes_of(shapes),
        "a[TREE] = (double *)MODEL_WORDS;\n    a[SYSTEM] = (double *)&FUNCTIONS;",
    )
    routines = "tree_step", "tree_linearize"
    sized = routines, len(tree_engine.ARRAYS), room
    return _Model(text, ("kernel.c",), given, *sized, (tree_engine.FOLDER,), TREE)


def _c_name(name: str) -> str:
    """A name for functions in C: they begin with a letter, and no _ follows another."""
    plain = re.sub("_+", "_", identifier(name)).strip("_")
    return plain if plain[:1].isalpha() else f"system_{plain}".strip("_")


def _by_name(functions: Iterable[ca.Function]) -> dict[str, ca.Function]:
    return {f.name(): f for f in functions}


def _routine(name: str, function: str) -> str:
    """C text of a `struct function`."""
    return "{0, 0}" if function in UNCALLED else f"{{function_{name}, 0}}"


def _sizes_of(shapes: Shapes) -> dict[str, int]:
    """Numbers of the arrays that are needed."""
    used = (name for name in shapes if name not in UNUSED)
    return {name: int(np.prod(np.asarray(shapes[name], dtype=int))) for name in used}


def _room(sizes: dict[str, int], more: str = "") -> str:
    """C text of `struct room` with arrays of these numbers, and of the list of them."""
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
    sizes |= {"NZ": d.method.nz, "NQ": d.system.space.nq, "N_PRESCRIBED": len(d.system.prescribed)}
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
    """The shortest decimal number with the same bits."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))


@dataclass(frozen=True)
class GainTable:
    """States (N + 1, nx), inputs (N, nu) and gains (N, nu, ndx) of a tracker; `hold`: whether the
    last ones are held past the end.
    """

    states: np.ndarray
    inputs: np.ndarray
    gains: np.ndarray
    limits: np.ndarray
    hold: bool

    @classmethod
    def of(cls, tracker: LqrTracker) -> GainTable:
        """The table of a tracker; one row if it holds one state."""
        states, inputs, K = tracker.reference.states, tracker.reference.inputs, tracker.gains.K
        at_rest = (np.abs(part - part[-1]).max() <= SAME for part in (states, inputs))
        if tracker.hold and all(at_rest):
            states, inputs, K = states[[-1, -1]], inputs[-1:], K[-1:]
        return cls(states, inputs, K, tracker.limits, tracker.hold)

    def text(self) -> str:
        """C text of the table."""
        names = ("TARGETS", "FEEDFORWARD", "GAINS", "LIMITS")
        values = (self.states, self.inputs, self.gains, self.limits)
        sizes = f"enum {{ STEPS = {len(self.inputs)}, HOLD = {int(self.hold)} }};\n"
        return sizes + "".join(map(table, names, values))


def _check_tracker(dsys: DiscreteSystem, tracker: LqrTracker) -> None:
    if tracker.dsys is not dsys:
        raise ValueError(f"expected a tracker of {dsys}, got one of {tracker.dsys}")
    if tracker.disturbance_gain:
        raise ValueError(f"{tracker}: C code has no disturbance estimate; use disturbance_gain=0")
    if dsys.system.n_holonomic_constraints:
        raise ValueError(
            f"{tracker}: C code has no tracker of systems with holonomic constraints, whose "
            "momenta have parts that no measurement shows; export without the tracker"
        )
