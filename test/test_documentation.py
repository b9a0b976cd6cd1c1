"""The documentation: every Python block runs, those of a page in one process one after another.
`cli/test_readme.py` runs the README.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "doc").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def script(page):
    """The blocks of a page at the lines where they are, so that errors name these lines."""
    text, lines = page.read_text(encoding="utf-8"), []
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        lines += [""] * (start - len(lines)) + block[1].splitlines()
    return "\n".join(lines)


def run(page, folder):
    runner = f"exec(compile({script(page)!r}, {page.name!r}, 'exec'), {{'__name__': 'page'}})"
    return subprocess.run(
        [sys.executable, "-c", runner], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES[1:] if script(page)], ids=lambda p: p.stem
)
def test_the_blocks_of_a_page_run(page, tmp_path):
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_block_that_fails_names_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    done = run(page, tmp_path)
    assert done.returncode == 1 and 'File "page.md", line 8' in done.stderr


def test_links_between_pages_lead_somewhere():
    """Relative links of all pages, with files of the repository."""
    missing = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "/reference/" in str(page.parent / target) or target.startswith("reference/"):
                continue  # pages that the build writes
            if not (page.parent / target).exists():
                missing.append(f"{page.relative_to(ROOT)}: {target}")
    assert not missing
