"""Build the documentation of this version next to that of earlier ones.

    python doc/publish.py SITE [--name NAME]

The pages are written to `SITE/<version>/`, or to `SITE/NAME/` for pages that belong to no release.
`SITE/latest` links to the newest release, if there is one. `SITE/index.html` lists all versions,
and each page links to it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nh_control

INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>nh_control: versions of the documentation</title>
</head>
<body>
<h1>nh_control</h1>
{latest}<ul>
{items}
</ul>
</body>
</html>
"""

LATEST = '<p><a href="latest/index.html">Documentation of the latest release</a></p>\n'


def release_number(name: str) -> tuple[int, ...]:
    """The numbers of a release "1.2.3", to compare releases; () for other names."""
    return tuple(map(int, name.split("."))) if re.fullmatch(r"\d+(\.\d+)*", name) else ()


def versions(site: Path) -> list[str]:
    """The versions that a site contains, newest release first and other names last."""
    names = {page.parent.name for page in site.glob("*/index.html")} - {"latest"}
    return sorted(names, key=lambda name: (release_number(name), name), reverse=True)


def write_index(site: Path) -> None:
    """List the versions in `index.html`, and link `latest` to the newest release, if any."""
    names = versions(site)
    items = "\n".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names)
    is_released = bool(release_number(names[0]))
    page = INDEX.format(items=items, latest=LATEST if is_released else "")
    (site / "index.html").write_text(page, encoding="utf-8")
    latest = site / "latest"
    latest.unlink(missing_ok=True)
    if is_released:
        os.symlink(names[0], latest, target_is_directory=True)


def main() -> None:
    """Build the pages and update the index."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path, help="folder of all versions")
    parser.add_argument("--name", default=nh_control.__version__, help="default: the version")
    arguments = parser.parse_args()
    settings = {"version": arguments.name, "release": arguments.name}
    settings["html_title"] = f"nh_control {arguments.name}"
    with TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", cache]
        command += ["-A", "published=1"]
        command += [f"-D{name}={value}" for name, value in settings.items()]
        command += [str(Path(__file__).parent), str(arguments.site / arguments.name)]
        subprocess.run(command, check=True)
    write_index(arguments.site)


if __name__ == "__main__":
    main()
