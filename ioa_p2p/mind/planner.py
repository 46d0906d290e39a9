"""The contract of a planner: it turns a goal into wants, and a view of the team into one Step at a time.

    launcher ── goal, found ──> wants ──> what to search, whom to ask
    coordinator ── View ──> next_step ──> Planned(Speak | Assign | Await | FormTeam | Conclude, what it cost)
    member ── Turn ──> speak ──> what its agent says

A planner never sends anything and is never trusted: the coordinator checks every Step against the phase table
and the caps, and replaces a planner that keeps failing.
"""

from collections.abc import Sequence
from typing import Protocol

from ioa_p2p.steps import FoundAgent, Planned, Turn, View, Wants


class Planner(Protocol):
    async def wants(self, goal: str, found: Sequence[FoundAgent], searched: frozenset[str]) -> Wants:
        """Asked again after every search with all that was found, until `done` or nothing new to search."""
        ...

    async def next_step(self, view: View) -> Planned:
        """One step. `view.problem` says why the last one could not be used."""
        ...

    async def speak(self, turn: Turn) -> str:
        """What our agent says when it has the word, at our own expense."""
        ...


def introduction(turn: Turn) -> str:
    """What an agent says that has no model."""
    return f"I am {turn.agent} and can do: {', '.join(turn.skills) or 'nothing'}."
