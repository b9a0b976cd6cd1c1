"""Compiled functions: the same results with and without a compiler, the cache between processes
and after accidents, purity, threads.
"""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from tiers import c_compiler, needs_compiler

import nh_control
from nh_control.integrators import midpoint
from nh_control.numerics import cache_folder, compiled
from nh_control.numerics.library import library
from nh_control.systems import pendulum

HERE = Path(__file__).parent
NEED_COMPILER = needs_compiler()


def start(code, cache, **environment):
    """A Python process that runs code with its own cache; finish() gives stdout and stderr."""
    path = [str(Path(nh_control.__file__).parents[1]), str(HERE), str(HERE.parent)]
    env = {
        **os.environ,
        "NH_CONTROL_CC": c_compiler() or "",
        "NH_CONTROL_CACHE": str(cache),
        "PYTHONPATH": os.pathsep.join(path),
        **environment,
    }
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out, err


def run(code, cache, **environment):
    return finish(start(code, cache, **environment))


STEP = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="LOG %(name)s: %(message)s")
import numpy as np
from nh_control.integrators import midpoint
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems import pendulum
dsys = midpoint(pendulum(), 0.0625)
x, u = np.array([0.5, 0.25]), np.array([0.1])
for _ in range(2):
    print(dsys.step(x, u).tolist(), dsys.linearize(x, u).A.tolist())
    wait_for_compiler()
"""


BROKEN = """#!/bin/sh
case "$1" in --version) {version};; *) echo "stdio.h: no such file" >&2; exit 1;; esac
"""


@pytest.mark.slow
@NEED_COMPILER
@pytest.mark.parametrize(
    "obstacle, words",
    [
        ("echo broken 1.0", ["virtual machine", "stdio.h: no such file"]),
        ("exit 1", ["virtual machine"]),
        ("no such compiler", ["no-such-compiler", "virtual machine"]),
        ("read-only", ["NH_CONTROL_CACHE", "virtual machine", "blocked"]),
    ],
)
def test_without_a_compiler_or_a_cache_the_results_are_the_same(obstacle, words, tmp_path):
    """A compiler that cannot compile, as without libc headers, or a wrapper that does not even
    know --version; a read-only home.
    """
    expected, _ = run(STEP, tmp_path / "good")
    cc, cache, blocked = tmp_path / "cc", tmp_path / "bad", tmp_path / "blocked"
    blocked.write_text("not a folder")
    cc.write_text(BROKEN.format(version=obstacle))
    cc.chmod(0o755)
    if obstacle == "read-only":
        got, log = run(STEP, blocked / "cache")
    else:
        other = "no-such-compiler" if obstacle == "no such compiler" else str(cc)
        got, log = run(STEP, cache, NH_CONTROL_CC=other)
        assert not list(cache.glob("*.so"))
    assert got == expected and all(word in log for word in words)
    broken = obstacle in ("echo broken 1.0", "exit 1")  # which is told of each function
    assert log.count("virtual machine") == (2 if broken else 1)


COUNTED = """
from nh_control.numerics.background import Background
calls, run = [], Background.run
Background.run = lambda self, command: calls.append(command) or run(self, command)
{code}
print("COMPILED", len(calls))
"""


def compilations(output):
    return int(re.search(r"COMPILED (\d+)", output).group(1))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache that was not there before COUNTED steps, and what they printed; to be copied where
    it is changed.
    """
    cache = tmp_path_factory.mktemp("filled") / "inner" / "cache"
    return cache, run(COUNTED.format(code=STEP), cache)[0]


@NEED_COMPILER
@pytest.mark.parametrize("mode", [0o770, 0o707, pytest.param(0o777, marks=pytest.mark.slow)])
def test_a_cache_that_others_can_write_is_refused_in_one_line(
    mode, tmp_path, monkeypatch, caplog, compiler
):
    """What lies there is neither loaded nor replaced."""
    cache = tmp_path / "shared"
    monkeypatch.setenv("NH_CONTROL_CACHE", str(cache))
    x, u = np.array([0.5, 0.2]), np.array([0.1])
    expected = midpoint(pendulum(), 0.1).prepare().step(x, u)
    planted = {file: file.read_bytes() for file in cache.glob("*.so")}
    assert planted
    library()  # which was installed, and is no file of the cache
    monkeypatch.setattr(compiled.ctypes, "PyDLL", lambda path: pytest.fail(f"loaded {path}"))
    cache.chmod(mode)
    cache_folder.is_private.cache_clear()
    with caplog.at_level(logging.WARNING):
        dsys = midpoint(pendulum(), 0.1)
        np.testing.assert_array_equal(dsys.step(x, u), expected)
        dsys.velocity(x), dsys.energy(x)
    (told,) = [r.getMessage() for r in caplog.records]
    place, remedy = told.split("; ", 1)
    assert str(cache) in place and f"mode {mode:o}" in place
    remedies = "delete it", f"`chmod 700 {cache}`", "virtual machine", "$NH_CONTROL_CACHE"
    assert all(one in remedy for one in remedies)
    assert {file: file.read_bytes() for file in cache.glob("*.so")} == planted


def test_a_cache_of_another_user_is_refused(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(cache_folder.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with caplog.at_level(logging.WARNING):
        assert not cache_folder.is_private(tmp_path / "theirs")
        assert not cache_folder.is_private(tmp_path / "theirs")
    owner = tmp_path.stat().st_uid
    assert f"it belongs to user {owner}, not to {owner + 1}" in caplog.text
    assert caplog.text.count("cannot use the cache") == 1


@NEED_COMPILER
def test_a_cache_is_made_for_its_user_alone_and_a_second_start_compiles_nothing(filled):
    cache, first = filled
    assert cache.stat().st_mode & 0o777 == 0o700
    files = sorted(cache.iterdir())
    stamps = [f.stat().st_mtime_ns for f in files if f.suffix == ".so"]
    second, _ = run(COUNTED.format(code=STEP), cache)
    assert compilations(first) == len(stamps) == 2 and compilations(second) == 0
    assert first.replace("COMPILED 2", "") == second.replace("COMPILED 0", "")
    assert (
        sorted(cache.iterdir()) == files
        and [f.stat().st_mtime_ns for f in files if f.suffix == ".so"] == stamps
    )


@pytest.mark.slow
@NEED_COMPILER
def test_processes_that_compile_at_once_compile_once(tmp_path):
    processes = [start(COUNTED.format(code=STEP), tmp_path) for _ in range(4)]
    outputs = [finish(p)[0] for p in processes]
    assert sum(map(compilations, outputs)) == 2
    assert len({re.sub(r"COMPILED \d+", "", o) for o in outputs}) == 1
    assert len(list(tmp_path.glob("*.so"))) == 2 and not [
        f for f in tmp_path.iterdir() if f.is_dir()
    ]


@NEED_COMPILER
@pytest.mark.parametrize(
    "keep", ["text", *(pytest.param(k, marks=pytest.mark.slow) for k in (0, 100, 0.3, 0.7))]
)
def test_a_damaged_file_in_the_cache_is_replaced(filled, tmp_path, keep):
    """Empty, cut off (as by a crash or a full disk), or not a library: compiled again, not a
    crash.
    """
    cache, first = filled
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    for file in tmp_path.glob("*.so"):
        data = file.read_bytes()
        file.write_bytes(
            b"no library" * 100
            if keep == "text"
            else data[: keep if isinstance(keep, int) else int(keep * len(data))]
        )
    got, log = run(COUNTED.format(code=STEP), tmp_path)
    assert got == first and compilations(got) == 2 and "compiling it again" in log
    again, _ = run(COUNTED.format(code=STEP), tmp_path)
    assert compilations(again) == 0


def test_functions_that_are_made_again_are_not_generated_again(tmp_path, monkeypatch, compiler):
    """By their expressions, not their names; unless the file is damaged or others may write it."""
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path))
    made, generate = [], compiled._compile
    monkeypatch.setattr(compiled, "_compile", lambda *args: made.append(args) or generate(*args))

    def value(factor):
        x = ca.SX.sym("x")
        f = compiled.Functions("again", [ca.Function("f", [x], [factor * ca.sin(x)])])
        compiled.wait_for_compiler()
        return f("f", 0.5)[0].item()

    assert value(2.0) == value(2.0) == 2 * np.sin(0.5) and len(made) == 1
    assert value(3.0) == 3 * np.sin(0.5) and len(made) == 2
    for file in tmp_path.glob("*.so"):
        file.rename(file.with_suffix(".gone"))
    assert value(2.0) == 2 * np.sin(0.5) and len(made) == 3
    cache_folder.is_private.cache_clear()
    tmp_path.chmod(0o777)
    assert value(2.0) == 2 * np.sin(0.5) and len(made) == 3
    cache_folder.is_private.cache_clear()


def test_functions_check_and_own_their_arrays():
    a, b = ca.SX.sym("a", 2), ca.SX.sym("b", 3)
    f = compiled.Functions(
        "probe", [ca.Function("outer", [a, b], [a @ b.T, ca.sum1(b)], ["a", "b"], ["o", "s"])]
    )
    first = f("outer", np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]))
    assert np.array_equal(first[0], [[3, 4, 5], [6, 8, 10]]) and first[1].shape == (1, 1)
    f("outer", np.zeros(2), np.zeros(3))
    assert first[0][1, 2] == 10
    assert np.array_equal(f("outer", [1, 2], (3, 4, 5))[0], first[0])
    with pytest.raises(ValueError, match=r"'b' must have shape \(3,\), got \(2,\)"):
        f("outer", np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="expected 2 arguments, got 1"):
        f("outer", np.zeros(2))
    with pytest.raises(ValueError):
        f("outer", np.zeros((2, 1)), np.zeros(3))
    with pytest.raises(ValueError, match=r"'a' must have shape \(2,\), got \(\)"):
        f("outer", 1.0, np.zeros(3))


def everything(dsys, x, u, lam):
    derivatives = dsys.linearize(x, u)
    values = dsys.step(x, u), derivatives.A, derivatives.B, dsys.hessian(x, u, lam)
    return *values, dsys.velocity(x), dsys.simulate(x, [u, u]).states


def test_compiled_code_takes_over_between_two_steps(tmp_path, monkeypatch, compiler):
    """While a thread steps on, with the same bits, in workspaces of before and after."""
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path))
    begin = threading.Event()
    make = compiled.Native._make
    monkeypatch.setattr(compiled.Native, "_make", lambda *a: begin.wait(60) and make(*a))
    dsys = midpoint(pendulum(), 0.1)
    arguments = np.array([0.3, -0.2]), np.array([0.1]), np.array([1.0, 2.0])
    expected = everything(dsys, *arguments)
    native = dsys.native()  # held by a loop
    held = native.stepper.routine
    assert not dsys.engine.is_compiled and not list(tmp_path.glob("*.so"))
    stop, differences = threading.Event(), []

    def go_on():
        while not stop.is_set():
            pairs = zip(everything(dsys, *arguments), expected)
            differences.extend(pair for pair in pairs if not np.array_equal(*pair))

    with ThreadPoolExecutor(2) as pool:
        loops = [pool.submit(go_on) for _ in range(2)]
        begin.set()
        dsys.prepare(hessian=True)
        assert dsys.engine.is_compiled and list(tmp_path.glob("*.so"))
        for mine, theirs in zip(everything(dsys, *arguments), expected):
            np.testing.assert_array_equal(mine, theirs)
        stop.set()
        [loop.result() for loop in loops]
    assert not differences
    assert dsys.native().stepper.routine is not held


def test_an_end_does_not_wait_for_the_compiler(tmp_path):
    """Nor for another process that compiles the same. What is not compiled by then is dropped, and
    the compiler killed.
    """
    cc = tmp_path / "cc"
    cc.write_text('#!/bin/sh\ncase "$1" in --version) echo slow 1.0;; *) sleep 1000;; esac\n')
    cc.chmod(0o755)
    codes = (
        "import time" + STEP.replace("wait_for_compiler()", f"time.sleep({s})") for s in (1, 300)
    )
    ends, stays = (start(code, tmp_path / "cache", NH_CONTROL_CC=str(cc)) for code in codes)
    waits = start(
        STEP.replace("wait_for_compiler()", "None"), tmp_path / "cache", NH_CONTROL_CC=str(cc)
    )
    try:
        expected, _ = run(STEP, tmp_path / "good")
        for process in (waits, ends):
            got, log = finish(process)
            assert got == expected and "LOG" not in log and "Traceback" not in log
    finally:
        stays.send_signal(signal.SIGINT)
        stays.communicate()
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


ALL = ("cc", "gcc", "clang", "icc")


@pytest.mark.parametrize(
    "environment, there, expected",
    [
        ({}, ("clang", "gcc", "cc"), "cc"),
        ({}, ("clang", "gcc"), "gcc"),
        ({}, ("clang", "icc"), "clang"),
        ({}, ("icc",), None),
        ({"CC": "icc"}, ALL, "icc"),
        ({"CC": "icc"}, ("cc",), None),
        ({"CC": ""}, ALL, None),
        ({"NH_CONTROL_CC": "clang", "CC": "icc"}, ALL, "clang"),
        ({"NH_CONTROL_CC": "", "CC": "icc"}, ALL, None),
    ],
)
def test_which_compiler_is_taken(environment, there, expected, monkeypatch, caplog):
    for name in ("CC", "NH_CONTROL_CC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        compiled.shutil, "which", lambda name: f"/bin/{name}" if name in there else None
    )
    with caplog.at_level(logging.WARNING):
        found = compiled.compiler.__wrapped__()
    assert found == (expected and f"/bin/{expected}")
    looked = environment.get("NH_CONTROL_CC", environment.get("CC", "cc, gcc, clang")) or "none"
    words = f"no C compiler (looked for {looked}): using CasADi's virtual machine"
    assert [r.getMessage().startswith(words) for r in caplog.records] == [True] * (not expected)


def test_a_library_is_named_by_all_that_it_is_made_of(tmp_path, monkeypatch):
    """And by nothing else, so that it is found again."""
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path))
    monkeypatch.setattr(compiled, "_intact", lambda target: True)
    monkeypatch.setattr(compiled.ctypes, "PyDLL", lambda path: path)
    x = ca.SX.sym("x")

    def path(name="f", value=2 * x, text="", cc="cc", flags=(), version="1", machine="x"):
        monkeypatch.setattr(compiled, "compiler", lambda: cc)
        monkeypatch.setattr(compiled, "FLAGS", flags)
        monkeypatch.setattr(compiled, "_compiler_version", lambda compiler: version)
        monkeypatch.setattr(compiled.platform, "machine", lambda: machine)
        native = compiled.Native(name, [ca.Function("f", [x], [value])], text)
        assert native.library == str(native.path) and native.path.parent == tmp_path
        return native.path

    changes = [
        {},
        {"name": "g"},
        {"value": 3 * x},
        {"text": "int a;"},
        {"cc": "gcc"},
        {"flags": ("-g", "-p")},
        {"flags": ("-g-p",)},
        {"version": "2"},
        {"machine": "y"},
    ]
    assert len({path(**change) for change in changes}) == len(changes)
    assert path() == path() and path().name.startswith("f-") and path().suffix == ".so"
