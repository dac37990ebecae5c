# SPDX-License-Identifier: GPL-2.0-only
"""The commands, one module each, imported when they are used: plots and tables are slow to import."""

COMMANDS = {
    "build": "fasttrack_lab.commands.build:command",
    "calibrate": "fasttrack_lab.commands.calibrate:command",
    "clean": "fasttrack_lab.commands.clean:command",
    "compare": "fasttrack_lab.commands.compare:command",
    "completion": "fasttrack_lab.commands.completion:command",
    "cost": "fasttrack_lab.commands.cost:command",
    "demo": "fasttrack_lab.commands.demo:command",
    "exec": "fasttrack_lab.commands.exec_:command",
    "figures": "fasttrack_lab.commands.figures:command",
    "frontier": "fasttrack_lab.commands.frontier:command",
    "off-check": "fasttrack_lab.commands.off_check:command",
    "lint-kernel": "fasttrack_lab.commands.lint_kernel:command",
    "kunit": "fasttrack_lab.commands.kunit:command",
    "matrix": "fasttrack_lab.commands.matrix:command",
    "ratchet": "fasttrack_lab.commands.ratchet:command",
    "replay": "fasttrack_lab.commands.replay:command",
    "report": "fasttrack_lab.commands.compare:report_command",
    "results": "fasttrack_lab.commands.results:command",
    "run": "fasttrack_lab.commands.run:command",
    "series-check": "fasttrack_lab.commands.series_check:command",
    "session": "fasttrack_lab.commands.session:command",
    "shell": "fasttrack_lab.commands.shell:command",
    "smoke": "fasttrack_lab.commands.smoke:command",
    "storebench": "fasttrack_lab.commands.storebench:command",
    "storebench-apply": "fasttrack_lab.commands.storebench:apply_command",
    "trace": "fasttrack_lab.commands.trace:command",
    "stress": "fasttrack_lab.commands.stress:command",
}
"""Name -> module and attribute."""

COMPLETE_VAR = "_FASTTRACK_COMPLETE"
"""By this environment variable a shell asks ./fasttrack what may come next."""
