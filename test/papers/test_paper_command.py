"""`nh_control paper`: the list, one figure, wrong names, and the table."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from tiers import c_compiler, needs_compiler

from nh_control.cli import main
from nh_control.figures import style
from nh_control.papers import PAPERS
from nh_control.papers.paper import Experiment, Outcome, Paper, Statement


def test_one_figure_is_written(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["paper", "celledoni2016", "--figure", "stability", "--output", str(out)]) == 0
    assert {f.name for f in out.iterdir()} == {"stability.png", "numbers.json", "table.md"}
    assert (out / "stability.png").stat().st_size > 10_000
    assert set(json.loads((out / "numbers.json").read_text())) == {"stability"}
    assert "Prop. 4.1" in (out / "table.md").read_text()
    assert "Prop. 4.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nobody1999"], "'nobody1999', choose one of: celledoni2016"),
        (["kobilarov2010", "--figure", "9"], "no figure '9', choose from: 1, 2, 3, 4"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(arguments, words, capsys):
    assert main(["paper", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_results_are_not_overwritten_unasked(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("")
    assert main(["paper", "kobilarov2010", "--figure", "3", "--output", str(tmp_path)]) == 2
    assert "--overwrite" in capsys.readouterr().err


def made(number, **changes):
    """Return an experiment with one row that agrees, with changes of its outcome."""
    values = {
        "draw": lambda: Figure((1, 1)),
        "numbers": {"one": 1},
        "statements": (Statement(f"Fig. {number}", "says", "is", True),),
        **changes,
    }
    return Experiment(number, f"the {number}. experiment", lambda _: Outcome(**values))


def raising(number, raises):
    """Return an experiment that ends by calling `raises`."""
    return Experiment(number, f"the {number}. experiment", lambda _: raises())


def fail():
    raise ValueError("no step | at h = 0.1")


def undrawn():
    raise RuntimeError("no picture")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """`written(experiments)` writes a paper of these; returns exit code, files, rows of the table
    and numbers.
    """

    def write(*experiments, arguments=()):
        monkeypatch.setitem(PAPERS, "made2026", Paper("made2026", "Made here", experiments))
        out = tmp_path / "out"
        code = main(["paper", "made2026", "--output", str(out), *arguments])
        rows = (out / "table.md").read_text().splitlines()[4:]
        numbers = json.loads((out / "numbers.json").read_text())
        return code, {file.name for file in out.iterdir()}, rows, numbers

    return write


def test_an_experiment_that_fails_is_a_row_and_the_others_go_on(written, capsys):
    code, files, rows, numbers = written(
        made("1"), raising("2", fail), made("3"), made("4", draw=undrawn),
        made("5", numbers={"far": float("inf")}), made("6"),
    )  # fmt: skip
    assert code == 1
    pictures = {f"figure_{n}.png" for n in (1, 3, 6)}
    assert files == {*pictures, "numbers.json", "table.md"}
    assert [row.split(" | ")[0] for row in rows] == [
        "| Fig. 1", "| figure_2", "| Fig. 3", "| figure_4", "| figure_5", "| Fig. 6",
    ]  # fmt: skip
    assert rows[1] == (
        "| figure_2 | the 2. experiment | failed, ValueError: no step \\| at h = 0.1 | NO |  |"
    )
    assert numbers["figure_2"] == {"failed": "ValueError: no step | at h = 0.1"}
    assert numbers["figure_4"] == {"failed": "RuntimeError: no picture"}
    assert numbers["figure_6"] == {"one": 1} and "not JSON" in numbers["figure_5"]["failed"]
    said = capsys.readouterr()
    assert "failed: figure_2, figure_4, figure_5" in said.err and "Fig. 6" in said.out


@pytest.mark.parametrize(
    "arguments, many", [((), 1000), (("--short",), 10), (("--long",), 100_000)]
)
def test_a_run_has_few_or_many_steps_as_asked_where_both_exist(arguments, many, written, tmp_path):
    two = replace(
        made("2", numbers={"steps": 1000}),
        short=made("2", numbers={"steps": 10}).compute,
        long=made("2", numbers={"steps": 100_000}).compute,
    )
    code, files, _, numbers = written(made("1"), two, arguments=arguments)
    assert code == 0 and {"figure_1.png", "figure_2.png"} < files
    assert numbers == {"figure_1": {"one": 1}, "figure_2": {"steps": many}}
    title = (tmp_path / "out" / "table.md").read_text().splitlines()[0]
    assert all(f"({form[2:]} form)" in title for form in arguments)
    assert ("form)" in title) == bool(arguments)


def test_each_experiment_is_written_as_it_ends(written, tmp_path):
    seen = []

    def look():
        seen.append({file.name for file in (tmp_path / "out").iterdir()})
        return made("2").compute(None)

    assert written(made("1"), raising("2", look))[0] == 0
    assert seen == [{"figure_1.png", "numbers.json", "table.md"}]


def interrupted_in_casadi():
    """Raise Ctrl-C as CasADi does: as a failure of its own."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("KeyboardInterrupt") from None


@pytest.mark.parametrize(
    "interrupted", [lambda: signal.raise_signal(signal.SIGINT), interrupted_in_casadi]
)
def test_ctrl_c_keeps_what_is_written(written, interrupted, capsys):
    code, files, rows, numbers = written(made("1"), raising("2", interrupted), made("3"))
    assert code == 130 and files == {"figure_1.png", "numbers.json", "table.md"}
    assert rows == ["| Fig. 1 | says | is | yes |  |"] and list(numbers) == ["figure_1"]
    assert "interrupted" in capsys.readouterr().err


def test_a_figure_is_written_completely_or_not_at_all(written, monkeypatch):
    def write_half(file, *_, **__):
        file.write_bytes(b"half")
        undrawn()

    def half():
        monkeypatch.setattr(style, "imsave", write_half)
        return Figure((1, 1))

    code, files, *_ = written(made("1"), made("2", draw=half))
    assert code == 1 and files == {"figure_1.png", "numbers.json", "table.md"}


MISSED = {
    "celledoni2016": (1, "(14) on (9) simplifies the computational cost"),
    "kobilarov2010": (4, "the printed data give no cusp"),
    "mueller2013": (1, "if its method is the classical one of fourth order"),
}
"""How many claims do not hold, and one of them, of papers that have some."""
HELD = {"celledoni2016": 26, "kobilarov2010": 21, "mueller2013": 24}


def missed(table):
    """Return the rows of claims that do not hold."""
    return [line for line in table.splitlines() if "| NO |" in line]


def whole_paper(key, folder, *arguments, **environment):
    """Run the command in a separate process, as users call it; returns its table."""
    call = "from nh_control.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", call, "paper", key, "--output", "out", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    out = folder / "out"
    pictures = {f"{experiment.file}.png" for experiment in PAPERS[key].experiments}
    assert {file.name for file in out.iterdir()} == {*pictures, "numbers.json", "table.md"}
    assert all((out / name).stat().st_size > 5_000 for name in pictures)
    numbers = json.loads((out / "numbers.json").read_text())
    assert len(numbers) == len(pictures)
    assert not [name for name, found in numbers.items() if "failed" in found]
    return (out / "table.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("key", PAPERS)
@needs_compiler()
def test_a_complete_paper_uses_compiled_code(key, tmp_path):
    table = whole_paper(key, tmp_path, NH_CONTROL_CC=c_compiler())
    many, words = MISSED.get(key, (0, ""))
    assert len(missed(table)) == many and words in "".join(missed(table)), missed(table)
    assert table.count("| yes |") == HELD.get(key, table.count("| yes |"))
    assert key != "celledoni2021" or "| - |" not in table


def by_hand_but(*quick):
    return [
        pytest.param(key, marks=pytest.mark.slow if key in quick else pytest.mark.exhaustive)
        for key in PAPERS
    ]


@pytest.mark.parametrize("key", by_hand_but("celledoni2016"))
def test_a_short_paper_needs_no_compiler(key, tmp_path):
    """No claim fails because there are few steps: those that need more stay undecided. The others
    take minutes of the processor, or have no short form.
    """
    table = whole_paper(key, tmp_path, "--short")
    assert len(missed(table)) == MISSED.get(key, (0, ""))[0], missed(table)
