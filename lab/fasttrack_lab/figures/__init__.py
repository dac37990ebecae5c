# SPDX-License-Identifier: GPL-2.0-only
"""The paper's figures, made again: what each needs to be run (`paper`), and how its numbers are shown.

`grid` names runs and `measured` looks their numbers up; `claims` compares with the paper; `drawing` plots; `page` and
`tables` write a directory of figures and the Markdown of docs/RESULTS.md. All are made from raw records.
"""
