"""Teams in trouble of a named kind, one file a scenario: a part of `./dev sim teams`.

A module is as those of `tests.sim.adversary`: `run(short) -> figures`, and `BARS`. Rules that must hold whatever
happens (docs/invariants.md) are watched all along and raise `Violation`.
"""
