"""The contract of a planner: it turns a goal into wants, and a view of the team into one Step at a time.

    launcher ── goal, found ──> wants ──> what to search, whom to ask
    coordinator ── View ──> next_step ──> Speak | Assign | Await | FormTeam | Conclude

A planner never sends anything and is never trusted: the coordinator checks every Step against the phase table
and the caps, and replaces a planner that keeps failing.
"""

from collections.abc import Sequence
from typing import Protocol

from ioa_p2p.steps import FoundAgent, Step, View, Wants


class Planner(Protocol):
    async def wants(self, goal: str, found: Sequence[FoundAgent], searched: frozenset[str]) -> Wants:
        """Asked again after every search with all that was found, until `done` or nothing new to search."""
        ...

    async def next_step(self, view: View) -> Step:
        """One step. `view.problem` says why the last one could not be used."""
        ...
