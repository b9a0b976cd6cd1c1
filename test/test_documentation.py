"""The documentation: every Python block runs, those of a page in one process one after another,
and prints what the page shows below it. `cli/test_readme.py` runs the README.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "doc").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
SHOWN = re.compile(r"^```\n\n```text\n(.*?)^```", re.M | re.S)
NUMBER = re.compile(r"([-+]?\d+\.?\d*(?:e[-+]?\d+)?)")


def script(page):
    """The blocks of a page at the lines where they are, so that errors name these lines."""
    text, lines = page.read_text(encoding="utf-8"), []
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        lines += [""] * (start - len(lines)) + block[1].splitlines()
    return "\n".join(lines)


def shown(page):
    """The lines of text blocks directly below Python blocks; `...` stands for what is left out."""
    text, lines = page.read_text(encoding="utf-8"), []
    for block in BLOCK.finditer(text):
        if below := SHOWN.match(text, block.end() - len("```")):
            lines += [line for line in below[1].splitlines() if line.strip() not in ("", "...")]
    return lines


def same(shown, printed):
    """Whether two lines have the same words, and numbers that agree to 2 % or to 1e-6."""
    words = re.escape(" ".join(NUMBER.sub("@", shown).split()))
    pattern = words.replace("@", NUMBER.pattern).replace(r"\.\.\.", ".*")
    match = re.fullmatch(pattern, " ".join(printed.split()))
    if match is None:
        return False
    numbers = np.array([NUMBER.findall(shown), match.groups()], dtype=float)
    return np.allclose(*numbers, rtol=0.02, atol=1e-6)


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
    printed = iter(done.stdout.splitlines())
    for line in shown(page):
        assert any(same(line, other) for other in printed), f"not printed: {line}\n{done.stdout}"


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
