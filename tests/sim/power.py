"""T18: a voter and its rows on a disk that loses its power at any moment; then it starts again from what is left.

    workload, recorded once ──> power loss at random points ──> SqliteStorage, Election ──> what was acknowledged

Failures 12 and 13: an acknowledgement, or a vote, that left before it was durable.
"""

import ctypes
import random
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ioa_p2p.effects import Now, Save, Send
from ioa_p2p.errors import IoaError
from ioa_p2p.storage.base import Storage
from ioa_p2p.storage.seal import Seal
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.team.election import Election
from ioa_p2p.wire.decision import VoteReply, VoteRequest
from ioa_p2p.wire.ids import blake
from tests.sim.disk import Operation, Recorder, after_power_loss
from tests.sim.teams import TEAM, Cast

NAME = "node.db"
NOW = Now(1_800_000_000.0, 100.0)
CAST = Cast(5)
VOTER, *CANDIDATES = CAST.nodes
VALUE_BYTES_MAX = 9_000  # some rows need pages of their own


class Vote(NamedTuple):
    term: int
    candidate: bytes


@dataclass
class Recording:
    """operations: of the disk. acknowledged[n]: how many there were when group n was acknowledged; contents[n]: a hash
    of what the store held then; votes[n]: the last vote that had left."""

    operations: list[Operation] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    votes: list[Vote | None] = field(default_factory=list)


@dataclass
class Figures:
    """Of `points`: those at which the node started; groups lost that were acknowledged; terms voted in twice."""

    points: int = 0
    starts: int = 0
    acked_lost: int = 0
    votes_twice: int = 0


def record(
    sqlite: ctypes.CDLL, dice: random.Random, groups: int, spoil: Callable[[SqliteStorage], None] = lambda _: None
) -> Recording:
    """Votes and rows of all sizes, put and deleted, until `groups` were acknowledged. spoil: plants a fault."""
    recorder, recording = Recorder(sqlite), Recording()
    recording.operations = recorder.operations
    with tempfile.TemporaryDirectory() as folder, recorder.installed():
        storage = SqliteStorage(Path(folder) / NAME)
        spoil(storage)
        for vote in _work(storage, dice, groups):
            recording.acknowledged.append(len(recorder.operations))
            recording.contents.append(content(storage))
            recording.votes.append(vote)
        storage.close()
    return recording


def lose_power(recording: Recording, dice: random.Random, figures: Figures) -> None:
    """At one random moment, that of the file's birth included."""
    point = dice.randint(0, len(recording.operations))
    group = bisect_right(recording.acknowledged, point) - 1
    figures.points += 1
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / NAME
        after_power_loss(recording.operations[:point], dice, Path(name))
        _leave_seal(path, dice, group)
        _start_again(path, recording, group, figures)


def _start_again(path: Path, recording: Recording, group: int, figures: Figures) -> None:
    try:
        storage = SqliteStorage(path)
        found, voter = content(storage), _voter(storage)
    except IoaError:
        return
    figures.starts += 1
    vote = recording.votes[group] if group >= 0 else None
    figures.acked_lost += group >= 0 and found not in recording.contents[group : group + 2]
    figures.votes_twice += vote is not None and _votes_again(voter, vote)
    storage.close()


def content(storage: Storage) -> bytes:
    """A hash of all rows."""
    rows = [(space, *row) for space in storage.spaces() for row in storage.scan(space)]
    return blake(repr(rows).encode())


def _work(storage: Storage, dice: random.Random, groups: int) -> Iterator[Vote | None]:
    """Each acknowledged group, with the last vote that left."""
    voter, vote = _voter(storage), None
    for number in range(groups):
        if dice.random() < 0.3:
            vote = Vote(number + 1, dice.choice(CANDIDATES))
            assert _ask(voter, vote, storage), "a free vote is given"
        else:
            storage.commit([_row(dice) for _ in range(dice.randint(1, 3))])
        yield vote


def _row(dice: random.Random) -> Save:
    key, value = dice.randrange(200).to_bytes(2), dice.randbytes(dice.randint(1, VALUE_BYTES_MAX))
    return Save(f"log/{dice.randrange(3)}", key, None if dice.random() < 0.2 else value)


def _voter(storage: Storage) -> Election:
    voter = CAST.make(VOTER, lambda space: list(storage.scan(space)), random.Random(1), NOW)
    storage.commit([effect for effect in voter.start(NOW) if isinstance(effect, Save)])
    return voter


def _ask(voter: Election, vote: Vote, storage: Storage | None = None) -> bool:
    """Whether a candidate gets the vote. What is to be saved is, before the answer counts."""
    request = VoteRequest(TEAM, 0, vote.term, 9, 0)
    effects = voter.handle_message(NOW, vote.candidate, request)
    if storage is not None:
        storage.commit([effect for effect in effects if isinstance(effect, Save)])
    answers = [effect.message for effect in effects if isinstance(effect, Send)]
    return any(isinstance(answer, VoteReply) and answer.vote for answer in answers)


def _votes_again(voter: Election, vote: Vote) -> bool:
    other = next(candidate for candidate in CANDIDATES if candidate != vote.candidate)
    return _ask(voter, Vote(vote.term, other))


def _leave_seal(path: Path, dice: random.Random, group: int) -> None:
    """It was never synced: any that was written since the file was made, or none."""
    if group >= 0 and dice.random() < 0.9:
        seal = Seal(path)
        seal.write(dice.randint(0, group + 2))
        seal.close()
