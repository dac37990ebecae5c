#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# mutants.sh [NAME...]
# Changes the lab's pure modules one expression at a time and lists the changes that no test sees; lab/pyproject.toml says
# which modules, by which tests. With names, such as 'fasttrack_lab.host.units*', only those. All take an hour or more.
set -eu
. "$(dirname -- "$0")/common.sh"
work=$cache/mutants
rm -rf "$work"
mkdir -p "$work"
cp -R "$here/lab/fasttrack_lab" "$here/lab/tests" "$here/lab/pyproject.toml" "$work"
# A changed module lies in mutants/, from where this is the checkout.
for part in contract docs kernel lab scripts; do
	ln -s "$here/$part" "$work/$part"
done
cd "$work"
unset PYTHONPATH
"$python" -m mutmut run --max-children "$(nproc)" "$@"
"$python" -m mutmut results
