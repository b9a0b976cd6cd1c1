"""Exported C code: it compiles by itself without a warning, as C99 and from C++, needs no memory
but the stack, and gives the numbers of the package.
"""

import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from tiers import c_compiler, needs_compiler

import nh_control as nh
from nh_control.control.estimation import Belief
from nh_control.integrators import INTEGRATORS, explicit_runge_kutta
from nh_control.multibody import Body, JointInput, JointSpring, floating, revolute
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.scenarios import get

pytestmark = needs_compiler()
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "{n}.h"
static double next(void) {{ char s[64]; return scanf("%63s", s) == 1 ? strtod(s, NULL) : 0.0; }}
static void get(int n, double *a) {{ for (int i = 0; i < n; ++i) a[i] = next(); }}
static void put(int n, const double *a) {{ for (int i = 0; i < n; ++i) printf("%a\\n", a[i]); }}
enum {{ NX = {N}_NX, NU = {N}_NU, NDX = {N}_NDX, NY = {N}_NY, NE = {N}_NE }};
enum {{ NQ = {N}_NQ, NW = {N}_NW }};
int main(void)
{{
    static double x[NX], u[NU + 1], x1[NX], A[NDX * NDX], B[NDX * NU + 1], dx[NDX], y[NY];
    static double v[NU + NW + 1], P[NDX * NDX], W[NDX * NDX], V[NE * NE];
    for (int cases = (int)next(); cases > 0; --cases) {{
        get(NX, x), get(NU, u), get(NDX, dx), get(NY, y), get(NDX * NDX, P), get(NDX * NDX, W);
        get(NE * NE, V), get(NW, v);
        double made = {n}_state(x, v, x1);
        put(NX, x1), made += {n}_velocity(x, v), put(1, &made), put(NW, v);
        const double step = {n}_step(x, u, x1);
        put(1, &step), put(NX, x1);
        const double linearized = {n}_linearize(x, u, x1, A, B);
        put(1, &linearized), put(NX, x1), put(NDX * NDX, A), put(NDX * NU, B);
        {n}_retract(x, dx, x1), put(NX, x1), {n}_local(x, x1, dx), put(NDX, dx);
        for (long k = 0; k < 8; ++k) {{ memset(v, 0, sizeof v); {track}put(NU, v); }}
        double failed = {n}_predict(x, P, u, W);
        failed += {n}_update(x, P, y, V), put(1, &failed), put(NX, x), put(NDX * NDX, P);
        {n}_measure(x, y), put(NY, y);
    }}
    return 0;
}}
"""


def program(folder, code, *flags, text=""):
    """The code, and more files by their names, compiled with a main program of these tests."""
    code.write(folder)
    track = f"{code.name}_track(k, x, v); " if f"{code.name}_track" in code.header else ""
    main = folder / "main.c"
    main.write_text(text or DRIVER.format(n=code.name, N=code.name.upper(), track=track))
    out = folder / "program"
    files = (str(main), str(folder / f"{code.name}.c"))
    command = [c_compiler(), *STRICT, *flags, *files, "-lm", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


class Given:
    """Random arguments of all functions about a state, and the numbers of the package."""

    def __init__(self, dsys, x, tracker, kalman, seed):
        rng, n = np.random.default_rng(seed), dsys.ndx
        self.x = dsys.retract(x, 0.1 * rng.normal(size=n))
        self.u = dsys.idle(self.x) + 0.1 * rng.normal(size=dsys.nu)
        self.dx, root = 0.3 * rng.normal(size=n), 0.1 * rng.normal(size=(n, n))
        self.y = kalman.expected(dsys.retract(self.x, 0.01 * rng.normal(size=n)))
        self.v = 0.3 * rng.normal(size=dsys.system.space.nw)
        self.P, self.W, self.V = root @ root.T, 1e-3 * np.eye(n), kalman.V
        self.of = dsys, tracker, kalman

    def numbers(self):
        parts = self.x, self.u, self.dx, self.y, self.P, self.W, self.V, self.v
        return np.concatenate([np.ravel(part) for part in parts])

    def expected(self):
        """Numbers that are the same to the bit, and those of products of matrices."""
        dsys, tracker, kalman = self.of
        lin, moved = dsys.linearize(self.x, self.u), dsys.retract(self.x, self.dx)
        made = dsys.measured_state(dsys.configuration(self.x), self.v)
        exact = [made, [0.0], dsys.velocity(self.x)]
        exact += [[0.0], dsys.step(self.x, self.u), [0.0], lin.x1, lin.A, lin.B, moved]
        exact += [dsys.local(self.x, moved)]
        if tracker is None:
            exact += [np.zeros(8 * dsys.nu)]
        else:
            exact += [law(tracker, k, self.x) for k in range(8)]
        filtered = nh.KalmanFilter(dsys, self.W, self.V, kalman._measurement)
        belief = filtered.update(filtered.predict(Belief(self.x, self.P), self.u), self.y)
        rounded = [[0.0], belief.x, belief.P, filtered.expected(belief.x)]
        return tuple(np.concatenate([np.ravel(p) for p in parts]) for parts in (exact, rounded))


def law(tracker, k, x):
    """The command, past an end in motion no force: damping needs a model. One state that is held
    has the last gain.
    """
    if tracker.hold and np.ptp(tracker.reference.states, axis=0).max() < 1e-12:
        k = len(tracker.reference)
    past = k >= len(tracker.reference) and not tracker.hold
    return np.zeros(tracker.dsys.nu) if past else tracker.command(k, x).u


def compared(folder, dsys, x, tracker=None, kalman=None, exact=True, flags=()):
    """Check three random cases."""
    code = nh.export_c(dsys, tracker, kalman, "exported")
    kalman = kalman or nh.KalmanFilter(dsys, np.eye(dsys.ndx), 1e-2 * np.eye(dsys.system.space.nv))
    cases = [Given(dsys, x, tracker, kalman, seed) for seed in range(3)]
    numbers = np.concatenate([[len(cases)], *(case.numbers() for case in cases)])
    text = "\n".join(float(value).hex() for value in numbers)
    done = subprocess.run(
        [program(folder, code, *flags)], input=text, capture_output=True, text=True, check=True
    )
    found = np.array([float.fromhex(line) for line in done.stdout.split()])
    for case in cases:
        same, rounded = case.expected()
        if exact:
            np.testing.assert_array_equal(found[: len(same)], same)
        else:
            np.testing.assert_allclose(found[: len(same)], same, rtol=1e-13, atol=1e-15)
        found = found[len(same) :]
        size = np.abs(rounded).max()
        np.testing.assert_allclose(found[: len(rounded)], rounded, rtol=0, atol=1e-14 * size)
        found = found[len(rounded) :]
    assert not len(found)
    return code


@cache
def tracked(name):
    """Model and tracker of a scenario's first reference."""
    scenario = get(name)
    dsys = scenario.model()
    return dsys, scenario.tracker(dsys, scenario.reference(dsys))


def tree(*base):
    """Two links on a base, with a spring."""
    parent, bodies = "world", []
    if base:
        parent, bodies = "base", [Body("base", 2.0, inertia=np.diag([0.1, 0.2, 0.25]))]
    inertia = np.diag([0.01, 0.02, 0.025])
    return nh.Multibody(
        "tree",
        [
            *base,
            revolute("shoulder", parent=parent, axis="y", position=(0.1, 0, 0)),
            revolute("elbow", parent="shoulder", axis="x", position=(0.4, 0, 0)),
        ],
        [*bodies, *(Body(link, 1.0, (0.2, 0, 0), inertia) for link in ("shoulder", "elbow"))],
        [JointSpring("elbow", 2.0)],
        [JointInput("elbow")],
    )


def test_a_scenario_has_the_numbers_of_the_package(tmp_path):
    """The cart-pole with the gains of its swing-up: to the bit."""
    dsys, tracker = tracked("cart_pole")
    code = compared(tmp_path, dsys, tracker.reference.states[3], tracker)
    for forbidden in ("malloc", "calloc", "alloca", "Python.h"):
        assert forbidden not in code.source
    assert "0 x, 1 theta, 2 p_x, 3 p_theta" in code.header


@pytest.mark.parametrize(
    "base",
    [(), pytest.param((floating("base"),), marks=pytest.mark.slow)],
    ids=["arm", "floating"],
)
def test_a_tree_has_the_numbers_of_the_kernel(base, tmp_path):
    """To the bit, also with generated functions of joints of several coordinates."""
    dsys = nh.midpoint(tree(*base).system, 0.02)
    assert isinstance(dsys.substep_engine, TreeEngine)
    v = 0.3 * np.arange(dsys.system.space.nw)
    compared(tmp_path, dsys, dsys.state(dsys.system.nominal_configuration, v), flags=["-O0"])


def pushed(make):
    """A cart-pole by another method, on a motion of it, which is not held."""
    dsys = make(tracked("cart_pole")[0].system, 0.02)
    motion = dsys.simulate([0.1, 0.2, 0.3, 0.1], np.full((4, 1), 0.5))
    return dsys, nh.LqrTracker(dsys, motion, np.eye(4), np.eye(1))


CASES = {
    "snakeboard": lambda: tracked("snakeboard"),
    "composition": lambda: pushed(INTEGRATORS["midpoint_order4"].make),
    "explicit": lambda: pushed(explicit_runge_kutta),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_other_systems_and_methods_have_the_numbers_of_the_package(name, tmp_path):
    """Compositions multiply matrices, and are the same to round-off."""
    dsys, tracker = CASES[name]()
    compared(tmp_path, dsys, tracker.reference.states[3], tracker, exact=name != "composition")


@pytest.mark.slow
def test_the_payload_has_the_numbers_of_the_package(tmp_path):
    """Held in hover, with one gain for all times."""
    scenario = get("quadrotor_payload")
    dsys = scenario.model()
    hover = scenario.reference(dsys, "hover")
    tracker = scenario.tracker(dsys, hover)
    code = nh.export_c(dsys, tracker)
    assert "STEPS = 1, HOLD = 1" in code.source
    compared(tmp_path, dsys, hover.states[0], tracker)


def test_a_step_that_fails_says_so(tmp_path):
    dsys, _ = tracked("cart_pole")
    text = (
        '#include <stdio.h>\n#include "cart.h"\nint main(void) {\n'
        "    double x[4] = {0, 0, 1e200, 1e200}, u[1] = {0}, x1[4] = {5};\n"
        '    printf("%d %d", cart_step(x, u, x1) == CART_CONVERGED, x1[0] == 5);\n}\n'
    )
    out = program(tmp_path, nh.export_c(dsys, name="cart"), "-O0", text=text)
    assert subprocess.run([out], capture_output=True, text=True, check=True).stdout == "0 1"


def test_the_example_runs_and_two_models_fit_in_one_program(tmp_path):
    """All symbols of the objects begin with the name of their model; the header is C++, too."""
    dsys, tracker = tracked("cart_pole")
    one, other = nh.export_c(dsys, tracker, name="one"), nh.export_c(dsys, name="other")
    other.write(tmp_path)
    text = one.example.replace('#include "one.h"', '#include "one.h"\n#include "other.h"')
    text = text.replace("return 0;", "return other_step(x, u, x);")
    out = program(tmp_path, one, "-O0", str(tmp_path / "other.c"), text=text)
    done = subprocess.run([out], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 4
    if shutil.which("g++"):
        (tmp_path / "user.cpp").write_text('#include "one.h"\nint main() { return !&one_step; }\n')
        subprocess.run(["g++", "-fsyntax-only", "-Wall", tmp_path / "user.cpp"], check=True)


def test_the_command_writes_what_the_function_gives(tmp_path, capsys):
    from nh_control import cli

    assert (
        cli.main(["export", "cart_pole", "--c", "--output", str(tmp_path), "--name", "cart"]) == 0
    )
    assert capsys.readouterr().out.count(str(tmp_path)) == 3
    code = nh.export_c(*tracked("cart_pole"), name="cart")
    texts = {"cart.h": code.header, "cart.c": code.source, "cart_example.c": code.example}
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == texts
    assert cli.main(["export", "cart_pole"]) == 2
    assert "--c" in capsys.readouterr().err


def test_what_cannot_be_exported_is_refused():
    dsys, tracker = tracked("cart_pole")
    other, kalman = dsys.with_step(0.02), nh.KalmanFilter(dsys, np.eye(4), np.eye(2))
    for words, arguments in (
        ("'2-link' must consist of letters", {"dsys": dsys, "name": "2-link"}),
        ("expected a tracker of", {"dsys": other, "tracker": tracker}),
        ("expected a filter of", {"dsys": other, "kalman": kalman}),
    ):
        with pytest.raises(ValueError, match=words):
            nh.export_c(**arguments)
