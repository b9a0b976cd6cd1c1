"""Robots with URDF files in packages on PyPI."""

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
"""Package and file: two arms, a gripper with mimic joints, two wheeled bipeds, a humanoid with
mimic joints.
"""


PACKAGES = "airo_models", "upkie_description", "cookie_description", "jvrc_description"


def all_files() -> list[Path]:
    """Return every URDF and the xacro of a whole robot in these packages; skip without them."""
    specs = [find_spec(package) for package in PACKAGES]
    if None in specs:
        pytest.skip("needs the packages of the extra urdf-test")
    roots = [Path(spec.submodule_search_locations[0]) for spec in specs]
    files = [file for root in roots for file in sorted(root.rglob("*.urdf"))]
    return [*files, *(file for root in roots for file in root.rglob("xacro/cookie.xacro"))]


def robot_file(name: str) -> Path:
    """Return the robot's URDF; skip the test if the package is missing."""
    package, file = ROBOTS[name]
    spec = find_spec(package)
    if spec is None:
        pytest.skip(f"needs the package {package}, see the extra urdf-test")
    return Path(spec.submodule_search_locations[0]) / file


LINK = """<link name="{}"><inertial>
<origin xyz="0.1 0.2 -0.1" rpy="0.3 0.1 0.2"/><mass value="2"/><inertia ixx="0.3" ixy="0.01" ixz="0" iyy="0.4" iyz="0.02" izz="0.2"/>
</inertial></link>"""
EVERY_JOINT = f"""<robot name="every_joint">
{"".join(LINK.format(name) for name in "abcdef")}
<joint name="glide" type="planar"><parent link="a"/><child link="b"/><origin xyz="1 0 0" rpy="0.1 0.2 0.3"/><axis xyz="0 0 1"/></joint>
<joint name="spin" type="continuous"><parent link="b"/><child link="c"/><origin xyz="0 1 0" rpy="0.4 0 0"/><axis xyz="0 0.6 0.8"/></joint>
<joint name="fly" type="floating"><parent link="c"/><child link="d"/><origin xyz="0 0 1"/></joint>
<joint name="push" type="prismatic"><parent link="d"/><child link="e"/><axis xyz="1 2 2"/><limit effort="5" velocity="1" lower="-1" upper="1"/></joint>
<joint name="weld" type="fixed"><parent link="e"/><child link="f"/><origin xyz="0 1 0" rpy="0 0.5 0"/></joint>
</robot>"""
"""A tree with every type of joint."""
PASSIVE = """<robot name="passive"><link name="base"/><link name="rod"><inertial>
<origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.08" ixy="0" ixz="0" iyy="0.08" iyz="0" izz="0.01"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit effort="0" velocity="0" lower="-3" upper="3"/></joint></robot>"""
"""A pendulum of 1 kg at 0.5 m, without a motor."""


def rover(*axles: str) -> str:
    """Return a URDF with the wheels rear_left, rear_right on driven joints, and, as `axles` say,
    front_left and front_right on passive ones behind driven steering joints, 0.6 m before them.
    """

    def link(name: str, mass: float, inertia: float, shape: str = "") -> str:
        J = " ".join(
            f'i{a}{b}="{inertia * (a == b)}"' for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
        )
        inertial = f'<origin xyz="0 0 0"/><mass value="{mass}"/><inertia {J}/>'
        return f'<link name="{name}"><inertial>{inertial}</inertial>{shape}</link>'

    def joint(name: str, kind: str, parent: str, child: str, at: str, axis: str, most: int) -> str:
        ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>'
        limit = f'<limit effort="{most}" velocity="20" lower="-0.6" upper="0.6"/>'
        return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="{axis}"/>{limit}</joint>'

    cylinder = '<geometry><cylinder radius="0.1" length="0.05"/></geometry>'
    shape = f'<collision><origin rpy="1.5707963267948966 0 0"/>{cylinder}</collision>'
    parts = [link("base", 20, 1)]
    for side, y in (("left", 0.25), ("right", -0.25)):
        for axle in ("rear", *axles):
            on, at = "base", f"0 {y} 0.1"
            if axle == "front":
                on, front = f"knuckle_{side}", f"0.6 {y} 0.1"
                turn = joint(f"steering_{side}", "revolute", "base", on, front, "0 0 1", 5)
                parts, at = [*parts, link(on, 0.5, 0.002), turn], "0 0 0"
            name, most = f"{axle}_{side}", 5 * (axle == "rear")
            rolls = joint(f"{name}_joint", "continuous", on, name, at, "0 1 0", most)
            parts += [link(name, 0.5, 0.002, shape), rolls]
    return f'<robot name="rover">{"".join(parts)}</robot>'
