"""What a member's log holds, for a launcher that looks for the longest one; and how the launcher takes it over.

    Survey(after) ──> Tail(entries, where it ends, led?)         log begins later ──> SnapshotPart, as to a follower

A log that ends later holds all that was decided in any that ends earlier (Raft paper, section 5.4.1): so the longest
of those that can be reached holds all that anybody there may have acknowledged. Entries prove themselves: each is
signed, chained to the one before, and its term's certificate verified.
"""

from collections.abc import Sequence

from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Decisions, Held
from ioa_p2p.team.election import Election
from ioa_p2p.team.intake import fresh_after
from ioa_p2p.team.snapshots import snapshot_of
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import SnapshotPart
from ioa_p2p.wire.team import Survey, Tail


def answer(election: Election, survey: Survey) -> list[Tail | SnapshotPart]:
    """Raises PeerError('other-incarnation') unless it asks for the log that we hold."""
    if survey.incarnation != election.incarnation:
        raise PeerError("other-incarnation")
    log, head = election.log, (survey.team, survey.incarnation)
    last_term, last_index = log.end
    led = election.coordinator is not None
    if survey.after >= log.first_index:
        entries = log.batch(survey.after + 1, limits.APPEND_ENTRIES_MAX)
        return [Tail(*head, survey.after, last_index, last_term, led, entries)]
    snapshot = snapshot_of(log)
    part = snapshot[survey.offset : survey.offset + limits.SNAPSHOT_PART_BYTES_MAX]
    size, place = len(snapshot), (log.first_index, survey.offset)
    return [
        SnapshotPart(*head, survey.term, place[0], size, place[1], part, 0),
        Tail(*head, survey.after, last_index, last_term, led),
    ]


def verified(election: Election, after: int, frames: Sequence[bytes], end: tuple[int, int]) -> list[Held]:
    """Entries to take in place of what we hold after `after`. end: (last term, last index) as its holder said.

    Raises PeerError('wrong-tail') unless they end there and later than ours, and as `fresh_after` does."""
    log: Decisions = election.log
    fresh = fresh_after(log, election.electorates, after, frames)
    last = fresh[-1].entry if fresh else None
    if last is None or (last.term, last.index) != end or end <= log.end:
        raise PeerError("wrong-tail", "it does not hold what it said")
    return fresh
