"""Campaigns: tests that repeat something many times, in a short form always and in full in ``make soak``."""

import os
from typing import Final

SOAK: Final = os.environ.get("SOAK") == "1"


def campaign(*, short: int, long: int) -> int:
    """How many kills, rounds or examples: ``short`` in ``make test``, ``long`` in ``make soak``.

    ``make soak`` runs the tests that are marked as ``campaign``.
    """
    return long if SOAK else short
