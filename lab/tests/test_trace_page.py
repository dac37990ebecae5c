# SPDX-License-Identifier: GPL-2.0-only
"""The page of a report in Chromium, on a desktop and on a phone: it fits, its text is readable, its filter filters."""

from __future__ import annotations

import re
from pathlib import Path

import browser
import pytest
from trace_generator import write as generate
from trace_records import HEAD, SECOND, bio, record, write
from trace_story import STORY

from fasttrack_lab.trace import fasttrack_evaluations, io_profile, io_profile_drawn, sources, trace_report, trace_shown
from fasttrack_lab.trace.interaction import Interaction

pytestmark = pytest.mark.skipif(browser.program() is None, reason=browser.LACKING)

WIDTHS = (1280, 390)
LEAST_PX = 9.0
UNIT = re.compile(r"\((%|ms|s|h|days|MiB|MB/s|number[^()]*)\)$")
LOOK = """
const filter = document.getElementById("filter");
const rows = () => [...document.querySelectorAll("tbody tr")].filter(row => row.offsetParent !== null).length;
const only = text => { filter.value = text; filter.dispatchEvent(new Event("input")); return rows(); };
const texts = svg => [...svg.querySelectorAll("text")].map(text => {
  const at = text.getBoundingClientRect(), of = svg.getBoundingClientRect(), scale = text.getScreenCTM();
  return {
    text: text.textContent.trim(),
    px: parseFloat(getComputedStyle(text).fontSize) * Math.hypot(scale.a, scale.b),
    whole: at.left >= of.left - 1 && at.right <= of.right + 1 && at.top >= of.top - 1 && at.bottom <= of.bottom + 1,
  };
});
const shown = {
  inner: window.innerWidth,
  scrolls: document.documentElement.scrollWidth,
  plots: [...document.querySelectorAll("figure svg")].map(svg =>
    ({ name: svg.closest("section")?.querySelector("h2").id ?? "", texts: texts(svg) })),
  prose: [...document.querySelectorAll("p, td, th, h1, h2, figcaption")]
    .map(one => parseFloat(getComputedStyle(one).fontSize)),
};
if (filter)
  shown.rows = { all: rows(), some: only("sqlite"), none: only("no row has this"), again: only("") };
return shown;
"""
PICTURE = (
    "<!doctype html><style>figure {{ margin: 0 }} svg {{ max-width: 100% }}</style><body><figure>{}</figure></body>"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with every plot, with long paths, and with what nobody knows."""
    scratch = tmp_path_factory.mktemp("page")
    generate(scratch / "archive", 5000)
    report = trace_report.make(sources.open_all([scratch / "archive"]), ["archive"])
    return trace_shown.page(report, io_profile_drawn.drawn(_profile(scratch)))


def _profile(scratch: Path) -> io_profile.Profile:
    (scratch / "story").mkdir()
    write(scratch / "story", [*HEAD, *STORY])
    return io_profile.of(sources.open_all([scratch / "story"]), Interaction("story", (10101,), 0.010))


def readable(seen: browser.Seen, width: int) -> None:
    """It has the WIDTH, no error, and plots with units whose texts are whole and not too small."""
    assert seen.console == []
    assert seen.found["inner"] == width
    assert seen.found["scrolls"] <= width
    assert seen.found["plots"]
    assert min([LEAST_PX, *seen.found["prose"]]) >= LEAST_PX
    plots = {plot["name"]: plot["texts"] for plot in seen.found["plots"]}
    assert [name for name, texts in plots.items() if not any(UNIT.search(one["text"]) for one in texts)] == []
    assert [
        (name, one["text"], one["px"]) for name, texts in plots.items() for one in texts if one["px"] < LEAST_PX
    ] == []
    assert [(name, one["text"]) for name, texts in plots.items() for one in texts if not one["whole"]] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_readable(page: str, width: int, tmp_path: Path) -> None:
    seen = browser.look(page, width, LOOK, tmp_path)
    readable(seen, width)
    drawn = {plot["name"] for plot in seen.found["plots"]}
    assert drawn >= {"profile", "by_hour", "by_day", "life_spans", "app_latency", "apps", "top_files", "databases"}
    rows = seen.found["rows"]
    assert rows["all"] == rows["again"] > rows["some"] > 0 == rows["none"]


def test_a_page_of_little_is_readable(tmp_path: Path) -> None:
    """One bio, times of 0, values that nobody knows, and losses."""
    lost = record("loss", 5 * SECOND, reason="ring_overrun", cpu=1, since=4 * SECOND, count=17)
    request = record("request", SECOND, operation="write", device_ns=0, bytes=1)
    write(tmp_path, [*HEAD, *bio(1, SECOND, owner="", sync=""), request, lost])
    report = trace_report.make(sources.open_all([tmp_path]), [f"/a/very/long/path/{'x' * 80}"])
    seen = browser.look(trace_shown.page(report), 390, LOOK, tmp_path)
    readable(seen, 390)


def test_a_page_over_nothing(tmp_path: Path) -> None:
    write(tmp_path, HEAD)
    report = trace_report.make(sources.open_all([tmp_path]), ["logs"])
    seen = browser.look(trace_shown.page(report), 390, LOOK, tmp_path)
    assert (seen.console, seen.found["plots"]) == ([], [])


@pytest.mark.parametrize("width", WIDTHS)
def test_pictures_of_evaluations_are_readable(width: int, tmp_path: Path) -> None:
    profile = _profile(tmp_path)
    picture = fasttrack_evaluations.throughput("game-load + update, s6", {"stock": profile, "fasttrack-minus": profile})
    readable(browser.look(PICTURE.format(picture), width, LOOK, tmp_path), width)


def test_an_error_of_a_page_is_seen(tmp_path: Path) -> None:
    """Else the tests above would find none."""
    seen = browser.look(
        "<!doctype html><body><script>lacking.f()</script></body>", 390, "return window.innerWidth;", tmp_path
    )
    assert seen.found == 390
    assert [text for text in seen.console if "lacking is not defined" in text]
