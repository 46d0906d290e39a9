"""A team's decided state as bytes, the same on every member, and back: what a checkpoint names the hash of.

    TeamState ── encode ──> bytes ── BLAKE2b ──> Checkpoint.state          bytes ── decode ──> TeamState

`VERSION` counts the changes of this encoding or of the rules of the fold: members of another version are not compared.
"""

from ioa_p2p.errors import PeerError
from ioa_p2p.team.budget import Budget
from ioa_p2p.team.phases import Phase
from ioa_p2p.team.standing import Standing
from ioa_p2p.team.state import SaidLine, TaskRow, TeamState
from ioa_p2p.wire import codec
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.roster import Roster
from ioa_p2p.wire.step import Await, Conclude, Discuss

VERSION = 1


class SavedState(Message, frozen=True):
    """The fields of `TeamState`, in an order that does not depend on chance: sets are sorted. `version` stays first."""

    version: int
    roster: Roster
    voters: tuple[bytes, ...]
    candidates: tuple[bytes, ...]
    learners: tuple[bytes, ...]
    gone: tuple[bytes, ...]
    phase: Phase
    index: int
    term: int
    at: int
    tasks: tuple[TaskRow, ...]
    budget: Budget
    turn: int
    open_turn: Discuss | None
    lines: tuple[SaidLine, ...]
    repeats: int
    empty: int
    waiting: Await | None
    conclusion: Conclude | None
    refused: tuple[tuple[str, int], ...]
    said: tuple[str, ...]


def encode(state: TeamState) -> bytes:
    standing = state.standing
    return codec.encode(
        SavedState(
            version=VERSION,
            roster=state.roster,
            voters=tuple(sorted(standing.voters)),
            candidates=tuple(sorted(standing.candidates)),
            learners=tuple(sorted(standing.learners)),
            gone=tuple(sorted(standing.gone)),
            phase=state.phase,
            index=state.index,
            term=state.term,
            at=state.at,
            tasks=tuple(state.tasks.values()),
            budget=state.budget,
            turn=state.turn,
            open_turn=state.open_turn,
            lines=state.lines,
            repeats=state.repeats,
            empty=state.empty,
            waiting=state.waiting,
            conclusion=state.conclusion,
            refused=tuple(state.refused.items()),
            said=tuple(sorted(state.said)),
        )
    )


def decode(data: bytes) -> TeamState:
    """Raises PeerError: 'undecodable', 'newer-state'."""
    saved = codec.decode(data, SavedState)
    if saved.version > VERSION:
        raise PeerError("newer-state", f"version {saved.version}; this program knows {VERSION}")
    state = TeamState(saved.roster)
    sets = (saved.voters, saved.candidates, saved.learners, saved.gone)
    state.standing = Standing(*map(frozenset, sets))
    state.phase, state.index, state.term, state.at = saved.phase, saved.index, saved.term, saved.at
    state.tasks = {row.spec.id: row for row in saved.tasks}
    state.budget, state.turn, state.open_turn = saved.budget, saved.turn, saved.open_turn
    state.lines, state.repeats, state.empty = saved.lines, saved.repeats, saved.empty
    state.waiting, state.conclusion = saved.waiting, saved.conclusion
    state.refused, state.said = dict(saved.refused), set(saved.said)
    return state
