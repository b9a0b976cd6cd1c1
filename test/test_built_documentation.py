"""The documentation as web pages: it builds without a warning and shows its version, its search
finds words, and its pages ask no other host.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nh_control
from nh_control import scenarios

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SHOWN = ("index", "start", "tutorials/cart_pole", "theory/idea", "reference/scenarios/wet_car")

pytest.importorskip("sphinx", reason="needs Sphinx: pip install -e '.[doc]'")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of all versions, with the pages of this one; warnings are errors."""
    folder = tmp_path_factory.mktemp("documentation")
    command = [sys.executable, "doc/publish.py", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def built(site):
    """The folder of the pages."""
    return site / nh_control.__version__


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, which draws in software."""
    driver = pytest.importorskip(
        "playwright.sync_api", reason="needs Playwright: pip install -e '.[browser-test]'"
    )
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    drawing = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", *drawing]
        )
        yield started
        started.close()


@pytest.mark.parametrize("page", ["index", "tutorials/cart_pole"])
def test_pages_show_their_version_and_link_to_all_versions(site, built, page):
    text = (built / f"{page}.html").read_text(encoding="utf-8")
    brand = re.search(r'class="sidebar-brand-text">(.*?)<', text)[1]
    assert brand == f"nh_control {nh_control.__version__}"
    link = re.search(r'class="sidebar-versions" href="(.*?)"', text)[1]
    assert (built / page).parent.joinpath(link).resolve() == site / "index.html"
    assert (site / "latest" / "index.html").samefile(built / "index.html")


@pytest.mark.parametrize("name", scenarios.names())
def test_every_scenario_has_a_page_with_a_figure_and_a_live_page(built, name):
    page = (built / "reference" / "scenarios" / f"{name}.html").read_text(encoding="utf-8")
    for file in (f"{name}.html", f"{name}.png"):
        assert f"{name}.{file.rpartition('.')[2]}" in page
        assert any(built.rglob(f"*/{file}")), file


@pytest.mark.parametrize("page", SHOWN)
def test_pages_ask_no_other_host(built, browser, page):
    shown, asked, errors = browser.new_page(), [], []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.goto((built / f"{page}.html").as_uri(), wait_until="load")
    shown.wait_for_timeout(500)  # what scripts ask for later
    assert asked and not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert not errors


@pytest.mark.parametrize("words", ["quasi-momentum", "arming", "joint_commands", "keep_out"])
def test_the_search_finds(built, browser, words):
    page = browser.new_page()
    page.goto(f"{(built / 'search.html').as_uri()}?q={words}")
    page.wait_for_selector("ul.search li a", timeout=30_000)
    assert page.locator("ul.search li a").count() >= 1
