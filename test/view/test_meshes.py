"""Surfaces of solids, and the meshes of URDF robots in pages and films."""

import logging
import re

import numpy as np
import pytest

import nh_control as nh
from nh_control.scenarios import urdf_meshes
from nh_control.scenarios.visual_model import STEEL
from nh_control.view import meshes, page
from nh_control.view.animation import Animation, Poses
from nh_control.view.painter import Painter

trimesh = pytest.importorskip("trimesh", reason="needs trimesh: pip install -e '.[mesh]'")
ROBOT = """<robot name="arm"><material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"/>
<link name="arm"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{visual}</link>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/>
<axis xyz="0 1 0"/><limit effort="1" velocity="1"/></joint></robot>"""
MESH = '<visual><origin xyz="0 0 -0.5" rpy="0 0 0.3"/><geometry>{}</geometry>{}</visual>'
RED = '<material name="red"/>'


def mesh(name, scale="2 1 1"):
    return f'<mesh filename="{name}" scale="{scale}"/>'


@pytest.fixture
def robot(tmp_path):
    """Writes a URDF in whose folder are wedges of all formats: f(geometry, material) -> file."""
    wedge = trimesh.convex.convex_hull([[0, 0, 0], [0.2, 0, 0], [0, 0.1, 0], [0, 0, 0.4]])
    for kind in ("stl", "obj", "dae", "glb"):
        wedge.export(tmp_path / f"wedge.{kind}")

    def write(geometry, material=RED):
        file = tmp_path / "arm.urdf"
        file.write_text(ROBOT.format(visual=MESH.format(geometry, material)))
        urdf_meshes._shapes.cache_clear()
        return file

    return write


def corners(shape):
    return shape.offset + shape.mesh.vertices * shape.extents


def is_outside_out(shape):
    faces = meshes.quadrilaterals(shape.mesh) * shape.extents
    middle = shape.mesh.vertices.mean(axis=0) * shape.extents
    return ((meshes.normals(faces) * (faces.mean(axis=1) - middle)).sum(axis=1) > 0).all()


@pytest.mark.parametrize("kind", ["stl", "obj", "dae", "glb"])
def test_meshes_of_every_format_are_where_the_urdf_puts_them(robot, kind):
    (shape,) = nh.scenarios.from_urdf(robot(mesh(f"wedge.{kind}"))).visual_model().shapes
    assert shape.frame == "arm" and shape.color == (1.0, 0.0, 0.0)
    c, s = np.cos(0.3), np.sin(0.3)
    expected = [[0, 0, 0], [0.4 * c, 0.4 * s, 0], [-0.1 * s, 0.1 * c, 0], [0, 0, 0.4]]
    found = np.unique(corners(shape).round(6), axis=0)
    wanted = np.unique((np.array(expected) - [0, 0, 0.5]).round(6), axis=0)
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert np.abs(shape.mesh.vertices).max() == pytest.approx(0.5)
    assert is_outside_out(shape)


def test_a_mirrored_mesh_has_its_outside_outside(robot):
    (shape,) = nh.scenarios.from_urdf(robot(mesh("wedge.stl", "-1 1 1"))).visual_model().shapes
    assert is_outside_out(shape)


def test_paths_are_packages_files_and_relative(robot, tmp_path, monkeypatch):
    package = tmp_path / "share" / "parts"
    package.mkdir(parents=True)
    (package / "wedge.stl").write_bytes((tmp_path / "wedge.stl").read_bytes())
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    for name in ("package://parts/wedge.stl", f"file://{tmp_path}/wedge.stl", "./wedge.stl"):
        assert len(urdf_meshes.shapes(robot(mesh(name)))) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("none.stl", "the file does not exist"),
        ("package://nowhere/wedge.stl", "nowhere"),
        ("broken.obj", "no surface|cannot be read"),
        ("broken.dae", "cannot be read"),
        ("large.stl", "the limit is 64 MB"),
    ],
)
def test_a_mesh_that_cannot_be_read_is_told_and_the_robot_is_drawn(
    robot, tmp_path, caplog, name, text
):
    (tmp_path / "broken.obj").write_text("nothing")
    (tmp_path / "broken.dae").write_text("<nothing")
    with open(tmp_path / "large.stl", "wb") as file:
        file.truncate(65 * 2**20)
    with caplog.at_level(logging.WARNING):
        visual = nh.scenarios.from_urdf(robot(mesh(name))).visual_model()
    assert re.search(text, caplog.text) and "link arm" in caplog.text
    assert {shape.kind for shape in visual.shapes} <= {"cylinder", "sphere"} and visual.shapes


def test_without_trimesh_the_skeleton_is_drawn_and_the_remedy_told(robot, caplog, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "trimesh", None)
    urdf_meshes._read.cache_clear()
    visual = nh.scenarios.from_urdf(robot(mesh("wedge.stl"))).visual_model()
    assert "pip install 'nh_control[mesh]'" in caplog.text
    assert visual.shapes == visual.line_shapes


@pytest.mark.parametrize(
    ("geometry", "extents"),
    [
        ('<box size="0.1 0.2 0.3"/>', (0.1, 0.2, 0.3)),
        ('<sphere radius="0.2"/>', (0.4, 0.4, 0.4)),
        ('<cylinder radius="0.1" length="0.5"/>', (0.2, 0.2, 0.5)),
        ('<capsule radius="0.1" length="0.5"/>', (0.2, 0.2, 0.7)),
    ],
)
def test_primitives_have_their_sizes(robot, geometry, extents):
    file = robot(geometry)
    file.write_text(file.read_text().replace("rpy", "x"))
    urdf_meshes._shapes.cache_clear()
    (shape,) = urdf_meshes.shapes(file)
    assert shape.extents == pytest.approx(extents, rel=0.02)
    assert shape.offset == pytest.approx((0, 0, -0.5), abs=0.01)


def test_colors_are_the_material_s_or_the_file_s(robot, tmp_path):
    green = trimesh.creation.box([0.1, 0.1, 0.1])
    green.visual = trimesh.visual.TextureVisuals(
        material=trimesh.visual.material.PBRMaterial(baseColorFactor=[0, 255, 0, 255])
    )
    green.export(tmp_path / "green.glb")
    assert urdf_meshes.shapes(robot(mesh("green.glb"), ""))[0].color == pytest.approx((0, 1, 0))
    assert urdf_meshes.shapes(robot(mesh("green.glb")))[0].color == (1, 0, 0)
    assert urdf_meshes.shapes(robot(mesh("wedge.stl"), ""))[0].color == STEEL
    seen = '<material name="x"><color rgba="0 0 1 0.4"/></material>'
    (shape,) = urdf_meshes.shapes(robot(mesh("wedge.stl"), seen))
    assert shape.color == (0, 0, 1) and shape.opacity == pytest.approx(0.4)


def test_fine_meshes_are_simplified_and_keep_their_place(robot, tmp_path):
    pytest.importorskip("fast_simplification")
    ball = trimesh.creation.icosphere(6, 0.3)
    ball.export(tmp_path / "ball.stl")
    (shape,) = urdf_meshes.shapes(robot(mesh("ball.stl", "1 1 1")))
    assert len(ball.faces) > 80_000
    assert len(shape.mesh.triangles) <= 1.5 * urdf_meshes.TRIANGLES
    radii = np.linalg.norm(corners(shape) - [0, 0, -0.5], axis=1)
    np.testing.assert_allclose(radii, 0.3, rtol=0.01)
    loose = [trimesh.creation.icosphere(0, 0.01) for _ in range(2000)]
    for k, one in enumerate(loose):
        one.apply_translation([0.001 * k % 0.3, 0.0, 0.001 * k])
    trimesh.util.concatenate(loose).export(tmp_path / "loose.stl")
    (shape,) = urdf_meshes.shapes(robot(mesh("loose.stl", "1 1 1")))
    assert len(shape.mesh.triangles) <= 1.5 * urdf_meshes.TRIANGLES


def test_pages_and_films_draw_the_mesh(robot):
    scenario = nh.scenarios.from_urdf(robot(mesh("wedge.stl", "4 4 1")))
    visual, q = scenario.visual_model(), np.linspace(0, 1, 5)[:, None]
    poses = Poses.of(visual, scenario.parameters, q)
    none = np.zeros((5, 0))
    shown = Animation("arm", visual, np.linspace(0, 1, 5), poses, None, (), none, none)
    given = page.payload(shown)["meshes"]["mesh 0"]
    surface = page.unpacked(given["corners"]).reshape(-1, 6)
    (shape,) = visual.shapes
    places = np.unique((shape.offset + surface[:, :3] * shape.extents).round(5), axis=0)
    np.testing.assert_allclose(places, np.unique(corners(shape).round(5), axis=0), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(surface[:, 3:], axis=1), 1, atol=1e-5)
    picture = np.asarray(Painter(shown, (160, 120)).picture(2), dtype=int)
    red = (picture[..., 0] > 2 * picture[..., 1]) & (picture[..., 0] > 60)
    assert red.sum() > 100


@pytest.mark.parametrize("kind", meshes.SOLIDS)
def test_solids_are_closed_and_lit_from_outside(kind):
    """The volume is that inside, and normals are those of the surface."""
    faces = meshes.solid(kind, meshes.PAGE)
    corners, triangles = meshes.shaded(faces)
    a, b, c = (corners[triangles[:, i], :3] for i in range(3))
    volume = (a * np.cross(b, c)).sum() / 6
    exact = {"box": 1.0, "cylinder": np.pi / 4, "cone": np.pi / 12, "sphere": np.pi / 6}[kind]
    assert volume == pytest.approx(exact, rel=0.03)
    places, normals = corners[:, :3], corners[:, 3:]
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-9)
    if kind == "sphere":
        assert ((places * normals).sum(axis=1) > 0.499).all()
    if kind == "box":
        assert len(corners) == 24 and set(np.abs(normals).round(6).ravel()) == {0.0, 1.0}
    if kind == "cylinder":
        side = np.abs(normals[:, 2]) < 0.5
        np.testing.assert_allclose(normals[side, 2], 0, atol=1e-9)
        radial = places[side, :2] / np.linalg.norm(places[side, :2], axis=1, keepdims=True)
        np.testing.assert_allclose(normals[side, :2], radial, atol=1e-6)
