# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment is made of, read from files and checked: scenarios, recordings, policies, phones, profiles."""
