"""Fixtures of the tests of sweeps."""

from sweeptools import no_orphans, points, store

__all__ = ["no_orphans", "points", "store"]
