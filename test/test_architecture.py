"""doc/architecture.md names files and functions that exist, and shows every room."""

import re
from pathlib import Path

from test_rooms import ROOMS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "doc" / "architecture.md").read_text(encoding="utf-8")
FILES = re.findall(r"`([a-z_0-9/]+\.(?:py|c))`", TEXT)
STOPS = re.findall(r"`([a-z_0-9/]+\.(?:py|c))`(?: \| |: )`(\w+)`", TEXT)


def test_named_files_exist():
    assert len(FILES) > 30
    roots = (ROOT / "nh_control", ROOT)
    assert not [name for name in FILES if not any((root / name).is_file() for root in roots)]


def test_named_functions_are_in_their_files():
    assert len(STOPS) > 25
    defined = r"(?:def|class|int|void) {0}\b|^{0} = "
    assert not [
        (file, name)
        for file, name in STOPS
        if not re.search(
            defined.format(name), (ROOT / "nh_control" / file).read_text("utf-8"), re.MULTILINE
        )
    ]


def test_the_picture_shows_every_room():
    picture = TEXT.partition("```text")[2].partition("```")[0]
    shown = re.findall(r"(\w+)/", picture)
    rooms = [room for room in ROOMS if not room.endswith(".py")]
    assert sorted(shown) == sorted([*rooms, "launch"])
