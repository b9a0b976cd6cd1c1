"""Write the pictures of the README's gallery: `python doc/gallery_pictures.py [NAME ...]`."""

from __future__ import annotations

import sys
from pathlib import Path

import scenario_pages

from nh_control import scenarios
from nh_control.view.painter import Painter
from nh_control.view.sources import of_result

ROOT = Path(__file__).parents[1]
FOLDER, SIZE, DRAWN_SIZE = ROOT / "doc" / "_static" / "gallery", (400, 300), (1200, 900)
SHOWN = {
    "quadrotor_payload": 0.25,
    "satellite": 0.3,
    "snakeboard": 0.7,
    "marionette": 0.5,
    "rolling_disk": 0.6,
    "cart_pole": 0.35,
    "pendulum_swing_up": 0.8,
    "resource/examples/truck_with_trailers.py": 0.5,
    "car": 0.6,
    "wet_snakeboard": 0.5,
}
"""Scenarios with the part of their run after which the picture is taken."""


def draw(name: str, part: float) -> Path:
    """Draw a scenario in the middle of a run; returns the file."""
    path = ROOT / name
    scenario = scenarios.get(str(path) if path.is_file() else name)
    animation = of_result(scenario_pages._run(scenario))
    painter = Painter(animation, DRAWN_SIZE)
    picture = painter.picture(int(part * (len(animation.times) - 1)))
    file = FOLDER / f"{path.stem}.webp"
    picture.resize(SIZE).save(file, quality=80)
    return file


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for shown in sys.argv[1:] or SHOWN:
        print(draw(shown, SHOWN[shown]))
