"""Who came in later proves it to members whose logs lag, or nobody could be elected once those who let it in are gone.

    its last roster links ── Introduce ──> each change proven, from the receiver's own electorate on ──> it has a say

Members of the founding roster are known to all and send nothing. What is remembered lasts as long as the process.
"""

from collections.abc import Iterable, Iterator

from ioa_p2p.errors import PeerError
from ioa_p2p.team.decisions import Decisions, held_of
from ioa_p2p.team.electorate import Electorate
from ioa_p2p.team.electorates import Electorates
from ioa_p2p.wire import limits
from ioa_p2p.wire.decision import (
    Ack,
    DecisionMessage,
    Introduce,
    PreVoteReply,
    RosterLink,
    SnapshotAck,
    VoteReply,
)
from ioa_p2p.wire.step import Promote, roster_step

_Answer = PreVoteReply | VoteReply | Ack | SnapshotAck


class Introductions:
    """Of one member: to whom it owes one, and whose it has accepted."""

    def __init__(self, me: bytes, founded: Electorate) -> None:
        self._came_later = me not in founded.voters
        self._answered: set[bytes] = set()
        self._met: set[bytes] = set()

    def __contains__(self, peer: bytes) -> bool:
        """It proved that it may lead, at a time when our log did not say so."""
        return peer in self._met

    # -- ours

    def due(self, peers: Iterable[bytes]) -> list[bytes]:
        """Those that did not answer in this round: perhaps they do not know who asks."""
        return [peer for peer in peers if self._came_later and peer not in self._answered]

    def hear(self, peer: bytes, message: DecisionMessage) -> None:
        if self._came_later and isinstance(message, _Answer):
            self._answered.add(peer)

    def lose(self, peer: bytes) -> None:
        self._answered.discard(peer)

    def begin_round(self) -> None:
        """All were asked or told: who is silent from now on is introduced to again, for it may have restarted."""
        self._answered.clear()

    # -- theirs

    def meet(self, electorates: Electorates, commit: int, peer: bytes, message: Introduce) -> None:
        """Raises PeerError: 'not-a-voter', and what entries, certificates and roster changes raise."""
        now = electorates.latest
        known = peer in self._met or peer in now.gone or now.may_lead(peer)
        if not known and message.incarnation == now.incarnation:
            _check(electorates.until(commit), peer, message)
            self._met.add(peer)


def introduction(log: Decisions) -> Introduce:
    """The newest changes in our log that one message holds."""
    links: list[RosterLink] = []
    size = 0
    for link in reversed(log.links(log.last_index)[-limits.INTRODUCTION_LINKS_MAX :]):
        size += len(link.frame) + sum(map(len, link.certificate))
        if size > limits.INTRODUCTION_BYTES_MAX:
            break
        links.insert(0, link)
    founding = log.founding.entry
    return Introduce(founding.team, founding.incarnation, log.term, tuple(links))


def _check(known: Electorates, peer: bytes, message: Introduce) -> None:
    """No signature is checked for one whom the changes do not even name."""
    news = list(_after(known.latest.roster_index, message))
    if not any(step == Promote(peer) for step, _ in news):
        raise PeerError("not-a-voter", "introduces itself by changes that do not name it")
    for _, link in news:
        known = known.after_link(link)
    if not known.latest.may_win(peer):
        raise PeerError("not-a-voter", "may not lead as far as its own changes say")


def _after(index: int, message: Introduce) -> Iterator[tuple[object, RosterLink]]:
    for link in message.links:
        entry = held_of(link.frame).entry
        if entry.index > index:
            yield roster_step(entry.step), link
