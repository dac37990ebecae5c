# SPDX-License-Identifier: GPL-2.0-only
"""Begins in the guest: config.json says what to do, beside it facts.json gets what was found, or why nothing was."""

from __future__ import annotations

import json
import subprocess

from fasttrack_lab.session import driver, killed, packaged


def main() -> None:
    """Reads what to do, and has it done."""
    config = json.loads((driver.LAB / "config.json").read_text())
    others = {driver.MODE_PACKAGE: packaged.measure, driver.MODE_KILLED: killed.measure}
    measure = others.get(config["mode"], driver.measure)
    try:
        facts = measure(config)
    except (driver.Failed, OSError, KeyError, ValueError) as error:
        facts = {"error": f"{type(error).__name__}: {error}"}
        journal = subprocess.run(["journalctl", "-b", "--no-pager"], capture_output=True, text=True, check=False)
        (driver.LAB / "journal.log").write_text(journal.stdout)
    (driver.LAB / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
