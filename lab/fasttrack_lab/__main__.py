# SPDX-License-Identifier: GPL-2.0-only
"""python -m fasttrack_lab is ./fasttrack."""

from fasttrack_lab.commands.cli import main

main()
