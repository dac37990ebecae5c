# SPDX-License-Identifier: GPL-2.0-only
"""Published figures, made again: what each needs to be run, and how its numbers are shown.

`paper` has FastTrack's, `smartio` the SmartIO poster's, `catalogue` finds them by name.
`grid` names runs and `measured` looks their numbers up; `claims` compares with the paper; `drawing` plots; `page` and
`tables` write a directory of figures and the Markdown of docs/RESULTS.md. All are made from raw records.
"""
