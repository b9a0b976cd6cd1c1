"""Scenarios from outside the package: the examples as files, and as a package of somebody else."""

import sys
from pathlib import Path

import pytest

from nh_control import scenarios
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import PlantOptions, Scenario
from nh_control.scenarios.disturbance import parse

EXAMPLES = Path(__file__).parents[2] / "resource" / "examples"
WITH_TESTS = ("upkie", "jvrc1", "payload_landing", "ur5e_around_ball")
"""Examples with tests of their own: three need a package of the extra urdf-test."""
FILES = {path.stem: path for path in sorted(EXAMPLES.glob("*.py")) if path.stem not in WITH_TESTS}
CALLS = {
    "arm_with_payload": (
        *("--perturb-angle", "0.02", "--plant-parameter", "lower_link_mass=1.05"),
        *("--disturb", "lower_link:gust:0,0,5,0,0,0,start=0.2,duration=0.2"),
    ),
    "cart_double_pendulum": (
        *("--reference", "push", "--perturb-angle", "0.02", "--perturb-position", "0.05"),
        *(
            "--plant-parameter",
            "cart=1.6",
            "--disturb",
            "tip:noise:0.1,0,0,correlation=0.2,seed=3",
        ),
    ),
    "differential_drive": (
        *("--reference", "slalom", "--perturb-heading", "0.3", "--perturb-seed", "2"),
        *("--disturb", "base_link:gust:0,3,0.5,start=0.5,duration=0.5"),
    ),
    "furuta_pendulum": (
        *("--reference", "upright", "--perturb-displacement", "0.02"),
        *("--plant-parameter", "mass=0.105", "--disturb", "arm:gust:0.01,start=0.5,duration=0.1"),
    ),
    "motor_arm": (
        *("--reference", "upright", "--perturb-displacement", "0.2"),
        *("--disturb", "angle:gust:0.5,start=0.5,duration=0.5"),
    ),
    "truck_with_trailers": (
        *("--perturb-displacement", "0.02", "--disturb", "base_link:gust:0,50,0,start=1"),
    ),
    "underwater_vehicle": (
        *("--reference", "station", "--perturb-heading", "0.5", "--perturb-position", "0.2"),
        *("--disturb", "vehicle:sine:0,1,0,0,0,0.1,frequency=0.5"),
    ),
}
"""Every example with an initial error, another plant or a disturbance of its own."""


def of_robot(name: str, description: str) -> Scenario:
    """The scenario NAME of an example of this name, whose robot comes with a package."""
    pytest.importorskip(description, reason="needs the robot: pip install -e '.[urdf-test]'")
    return scenarios.get(f"{EXAMPLES / f'{name}.py'}:{name.upper()}")


def pushed(scenario: Scenario, reference: str, push: str = "") -> Result:
    """The run along a reference under a disturbance, which does not fail."""
    options = PlantOptions(disturbances=(parse(push),) if push else ())
    experiment = Experiment.make(scenario, reference, options=options)
    loop = experiment.run()
    assert loop.failure is None
    return Result(experiment, loop, None, 0.0)


def install(folder: Path, package: str = "nh_robots", **scenarios: str) -> Path:
    """The folder of a package with all examples and these entry points, as of an installer."""
    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        del sys.modules[module]
    code, about = folder / package, folder / f"{package}-1.2.dist-info"
    for made in (code, about):
        made.mkdir(parents=True)
    (code / "__init__.py").write_text("")
    for name, path in FILES.items():
        (code / f"{name}.py").write_text(path.read_text())
    found = scenarios or {f"my_{name}": f"{package}.{name}:{name.upper()}" for name in FILES}
    lines = [f"{name} = {value}" for name, value in found.items()]
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("\n".join(["[nh_control.scenarios]", *lines, ""]))
    return folder
