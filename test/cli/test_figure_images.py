"""A few figures are compared with stored images."""

from functools import partial
from pathlib import Path

import pytest
from matplotlib.testing.compare import compare_images

from nh_control import scenarios
from nh_control.figures import style
from nh_control.figures.gallery import figures
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import PlantOptions, disturbance

KEPT = Path(__file__).parent / "images"
LOOK = {"font.family": "DejaVu Sans", "savefig.dpi": 50}
"""The font is matplotlib's own; in small images a pixel of text does not count, but a line, a
mark or a solid does."""
TOLERANCE = 5.0
"""Root mean square of the differences of colors of 8 bits."""
SHOWN = {"snakeboard": ("path", "states", "inputs", "error"), "satellite": ("path", "error")}
OPTIONS = {
    "snakeboard": PlantOptions(disturbances=(disturbance.parse("theta:gust:0.2,start=1"),)),
    "satellite": PlantOptions(),
}


def run(name: str) -> Result:
    """Return the first seconds of a scenario."""
    experiment = Experiment.make(scenarios.get(name), options=OPTIONS[name], duration_s=4.0)
    return Result(experiment, experiment.run(), experiment.run(feedback=False), wall_s=0.1)


def draw(name: str, folder: Path) -> None:
    """Write the images of a scenario into a folder."""
    result = run(name)
    for figure in SHOWN[name]:
        make = figures(result.experiment.scenario)[figure]
        style.save(partial(make, result), folder / f"{name}_{figure}.png")


@pytest.fixture
def small_images(monkeypatch):
    """Save figures in the style of this test."""
    monkeypatch.setattr(style, "STYLE", style.STYLE | LOOK)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_figures_look_as_they_did(name, tmp_path, small_images):
    draw(name, tmp_path)
    for figure in SHOWN[name]:
        kept, new = (str(folder / f"{name}_{figure}.png") for folder in (KEPT, tmp_path))
        assert compare_images(kept, new, TOLERANCE) is None


if __name__ == "__main__":
    style.STYLE.update(LOOK)
    KEPT.mkdir(exist_ok=True)
    for scenario in SHOWN:
        draw(scenario, KEPT)
