# SPDX-License-Identifier: GPL-2.0-only
"""Pages as Chromium shows them: what a script finds in them, and what the console says."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
LACKING = "no Chromium is installed (apt-get install chromium)"
_LIMIT_S = 180
_SEEN = re.compile(r'<script type="application/json" id="seen">(.*?)</script>', re.DOTALL)
_SAYS = re.compile(r'CONSOLE[^"]*"(.*)", source: ')
_PUT = """<script>
const seen = parent.document.createElement("script");
seen.type = "application/json"; seen.id = "seen";
seen.textContent = JSON.stringify((() => {{ {script} }})());
parent.document.body.append(seen);
</script>"""
_FRAME = (
    """<!doctype html><body><iframe style="border: 0" width="{width}" height="1000" srcdoc="{page}"></iframe></body>"""
)
"""No window is narrower than 500 pixels. A frame is what a page sees as its window."""


def program() -> str | None:
    """Chromium, if it is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(frozen=True)
class Seen:
    """A page in a window."""

    found: Any
    """What the script returns."""
    console: list[str]


def look(page: str, width: int, script: str, scratch: Path) -> Seen:
    """Shows an HTML text, which has a </body>, in WIDTH CSS pixels and runs the body of a function in it."""
    chromium = program()
    assert chromium is not None
    file = scratch / "looked-at.html"
    told = page.replace("</body>", _PUT.format(script=script) + "</body>")
    file.write_text(_FRAME.format(width=width, page=html.escape(told)), encoding="utf-8")
    done = subprocess.run(
        [
            chromium,
            "--headless",
            # Its own walls do not stand in every container; the page is ours.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={scratch / 'chromium'}",
            f"--window-size={width + 200},1200",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_LIMIT_S,
        check=True,
    )
    found = _SEEN.search(done.stdout)
    assert found is not None, (_SAYS.findall(done.stderr), done.stderr[-2000:])
    return Seen(json.loads(found[1]), _SAYS.findall(done.stderr))
