# SPDX-License-Identifier: GPL-2.0-only
"""All metrics: importing this registers them in METRICS, in the order of a report."""

from fasttrack_lab.trace.metric import METRICS, Metric
from fasttrack_lab.trace.metrics import amount, layers, owners, quality, sqlite, syncs

__all__ = ["METRICS", "Metric", "amount", "layers", "owners", "quality", "sqlite", "syncs"]
