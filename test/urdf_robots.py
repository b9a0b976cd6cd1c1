"""Robots whose URDF files are in packages on PyPI."""

from importlib.util import find_spec
from pathlib import Path

import pytest

ROBOTS = {
    "ur3e": ("airo_models", "arms/ur3e/ur3e.urdf"),
    "ur5e": ("airo_models", "arms/ur5e/ur5e.urdf"),
    "robotiq_2f_85": ("airo_models", "grippers/robotiq_2f_85/urdf/robotiq_2f_85.urdf"),
    "upkie": ("upkie_description", "urdf/upkie.urdf"),
    "cookie": ("cookie_description", "urdf/cookie.urdf"),
    "jvrc1": ("jvrc_description", "urdf/jvrc1.urdf"),
}
"""Package and file: two arms, a gripper with mimic joints, two wheeled bipeds, a humanoid with mimic joints."""


def robot_file(name: str) -> Path:
    """The robot's URDF; skips the test where the package is missing."""
    package, file = ROBOTS[name]
    spec = find_spec(package)
    if spec is None:
        pytest.skip(f"needs the package {package}, see the extra urdf_test")
    return Path(spec.submodule_search_locations[0]) / file
