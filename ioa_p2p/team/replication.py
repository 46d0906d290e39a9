"""The coordinator's side of the log for one term: what each follower holds, what to send it, what is decided.

    next ── sent, optimistically ──> next + n        ack: match grows        refused: next goes back to the hint

Source: Raft paper, sections 5.3 and 5.4.2; an answer to a round dates the lease (Ongaro's thesis, 6.4.1).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ioa_p2p.effects import Now
from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Decisions
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import Ack, Append, Certificate

NEVER = float("-inf")


@dataclass(slots=True)
class Follower:
    """next: index of the first entry not yet sent. match: it durably holds our log up to here.

    heard_s: when (our boot clock) the newest round that it answered was sent. rewound: the round, in ms, when
    next last went back: refusals of older rounds say nothing new.
    """

    next: int
    heard_s: float = NEVER
    match: int = 0
    rewound: int = 0

    @property
    def room(self) -> int:
        """How many more entries may be under way to it."""
        return max(0, limits.APPEND_WINDOW - (self.next - 1 - self.match))


class Replication:
    """Made anew for every term that we lead."""

    def __init__(self, log: Decisions, peers: Iterable[bytes], majority: int, certificate: Certificate) -> None:
        """Call before the term's first entry is appended. peers: the other voters; majority counts us too."""
        self._log, self._majority, self._certificate = log, majority, certificate
        self._first = log.last_index + 1
        self._followers = {peer: Follower(self._first) for peer in peers}

    def __contains__(self, peer: bytes) -> bool:
        return peer in self._followers

    def append_for(self, peer: bytes, now: Now) -> Append:
        """The next message to `peer`: entries it was not sent yet, or only a beat."""
        follower, log = self._followers[peer], self._log
        founding, previous = log[0].entry, log[follower.next - 1].entry
        entries = log.batch(follower.next, follower.room)
        follower.next += len(entries)
        return Append(
            team=founding.team,
            incarnation=founding.incarnation,
            term=log.term,
            previous_index=previous.index,
            previous_term=previous.term,
            entries=entries,
            commit=log.commit,
            round=_round(now),
            certificate=self._certificate if follower.match < self._first else (),
        )

    def check(self, ack: Ack) -> None:
        """Raises PeerError('ack-ahead') for an answer to what was never sent."""
        if max(ack.index, ack.hint) > self._log.last_index:
            raise PeerError("ack-ahead", f"entry {ack.index} of {self._log.last_index}")

    def hear_votes(self, voters: Iterable[bytes], asked_s: float) -> None:
        """A vote answers the request of boot second `asked_s`: the first lease counts from there."""
        for peer in voters:
            if peer in self:
                self._followers[peer].heard_s = asked_s

    def hear(self, peer: bytes, ack: Ack, now: Now) -> bool:
        """Take an answer to a round of ours. True: there is more to send to this follower at once."""
        follower = self._followers[peer]
        follower.heard_s = max(follower.heard_s, min(ack.round / 1000, now.boot))
        if not ack.ok:
            return _rewind(follower, ack, now)
        follower.match = max(follower.match, ack.index)
        follower.next = max(follower.next, follower.match + 1)
        return follower.next <= self._log.last_index and follower.room > 0

    def holds_lease(self, now: Now, lease_s: float) -> bool:
        """A majority, with us, answered a round not older than `lease_s`."""
        heard = sorted((follower.heard_s for follower in self._followers.values()), reverse=True)
        others = self._majority - 1
        return others == 0 or now.boot <= heard[others - 1] + lease_s

    def decided(self) -> int:
        """The index up to which a majority holds the log; entries of older terms count only below one of this
        term (Figure 8), so without such the commit stays."""
        matches = [self._log.last_index, *(follower.match for follower in self._followers.values())]
        index = sorted(matches, reverse=True)[self._majority - 1]
        return index if self._log.matches(index, self._log.term) else self._log.commit

    def successor(self, candidates: frozenset[bytes]) -> bytes | None:
        """The follower heard last among those that hold all of the log and may lead."""
        ready = [(follower.heard_s, peer) for peer, follower in self._followers.items() if peer in candidates]
        ready = [(heard_s, peer) for heard_s, peer in ready if self._followers[peer].match == self._log.last_index]
        return max(ready)[1] if ready else None


def _rewind(follower: Follower, ack: Ack, now: Now) -> bool:
    """Go on from the hint. Also lowers match: who lost its disk holds less than it once said."""
    if ack.round < follower.rewound:
        return False
    follower.match = min(follower.match, ack.hint)
    follower.next = ack.hint + 1
    follower.rewound = _round(now)
    return True


def _round(now: Now) -> int:
    return int(now.boot * 1000)
