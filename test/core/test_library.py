"""The native library: what it is built from, and which one a processor loads."""

import shutil

import numpy as np
import pytest

from nh_control.integrators import midpoint
from nh_control.multibody import Body, Multibody, revolute
from nh_control.numerics import library


@pytest.fixture
def other_processor(monkeypatch):
    """Make the library that another processor loads: `use(features)`."""

    def use(*features):
        monkeypatch.setattr(library, "processor_features", lambda: set(features))
        library.library.cache_clear()

    yield use
    library.library.cache_clear()


def test_every_processor_computes_the_same_bits(other_processor):
    features = [names for names in library.PROCESSORS if {*names} <= library.processor_features()]
    states = []
    for names in features:
        other_processor(*names)
        links = [revolute("a", axis="y"), revolute("b", "a", "x", (0, 0, -1))]
        model = Multibody("arm", links, [Body("a", 1.0, (0, 0, -1)), Body("b", 2.0, (0, 1, 0))])
        arm = midpoint(model.system, 0.01)
        x = arm.state([0.1, 0.2], [1.0, -1.0])
        for _ in range(10):
            x = arm.step(x, arm.idle(x))
        states.append((x, arm.linearize(x, arm.idle(x)).A))
    for x, A in states[1:]:
        np.testing.assert_array_equal(x, states[0][0])
        np.testing.assert_array_equal(A, states[0][1])


def test_an_unknown_processor_loads_the_first_library(other_processor):
    other_processor("neon")
    assert library.library()._name.endswith(library.file_name(()))


def test_a_missing_library_is_an_error_with_its_remedy(other_processor, monkeypatch, tmp_path):
    other_processor()
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    with pytest.raises(OSError, match=r"libnh_control\.so is missing: .*pip install -e \."):
        library.library()


def test_a_library_of_other_c_files_is_an_error_with_its_remedy(other_processor, monkeypatch):
    other_processor()
    monkeypatch.setattr(library, "digest", lambda: "0" * 64)
    with pytest.raises(OSError, match=r"built from different C files: .*pip install -e \."):
        library.library()


def test_a_change_of_a_header_changes_the_digest(monkeypatch, tmp_path):
    before = library.digest()
    for folder in library.INCLUDES:
        shutil.copytree(library.ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(library, "ROOT", tmp_path)
    assert library.digest() == before
    with open(tmp_path / "multibody/native/vectors.h", "a") as header:
        header.write("\n")
    assert library.digest() != before
