"""Whom a fresh entry goes to.

    own line ──> every linked member that keeps up (teams of more than 16: 6 random ones, a digest to the rest)
    another's ──> linked members that have no link with its author (large teams: 6 random ones)

A member whose acknowledgements lag by more than 512 entries is left alone: it pulls when it can.
"""

import random
from collections.abc import Collection

from ioa_p2p.gossip.frontier import Marks
from ioa_p2p.wire import limits


class Reach:
    """Live links of the team: ours, and what members told of theirs."""

    def __init__(self, me: bytes, marks: Marks, rng: random.Random) -> None:
        self.linked: tuple[bytes, ...] = ()
        self.behind: set[bytes] = set()
        self._me, self._marks, self._rng = me, marks, rng
        self._large = False
        self._links_of: dict[bytes, Collection[bytes]] = {}
        self._relays: dict[bytes, tuple[bytes, ...]] = {}

    def relink(self, members: Collection[bytes], links: Collection[bytes]) -> tuple[list[bytes], list[bytes]]:
        """New members or links; returns the members with a fresh link, and those whose link is gone."""
        old, self._large = self.linked, len(members) > limits.CHAT_PUSH_ALL_MAX
        self.linked = tuple(member for member in members if member in links and member != self._me)
        gone = [member for member in old if member not in self.linked]
        for member in gone:
            self._links_of.pop(member, None)
            self.behind.discard(member)
        self._relays.clear()
        return [member for member in self.linked if member not in old], gone

    def hear(self, member: bytes, links: Collection[bytes]) -> None:
        """`member` told whom it has live links with."""
        if self._links_of.get(member) != links:
            self._links_of[member] = links
            self._relays.clear()

    def meets(self, member: bytes, other: bytes) -> bool:
        """Whether `member` said that it has a live link with `other`."""
        return other in self._links_of.get(member, ())

    def pushes(self, seq: int) -> tuple[list[bytes], list[bytes]]:
        """Members that get our line `seq`, and members that get its digest only."""
        fit = [member for member in self.linked if self._keeps_up(self._me, member, seq)]
        if not self._large:
            return fit, []
        some = self._some(fit)
        return some, [member for member in self.linked if member not in some]

    def relays(self, author: bytes, seq: int, source: bytes) -> list[bytes]:
        """Members that get another's entry from us; `source` gave it to us."""
        relays = self._relays.get(author)
        if relays is None:
            relays = self._relays[author] = self._relays_of(author)
        if not relays:
            return []
        fit = [
            member
            for member in relays
            if member != source and self._marks.of(author, member) < seq and self._keeps_up(author, member, seq)
        ]
        return self._some(fit) if self._large else fit

    def lags(self, member: bytes, seq: int) -> bool:
        """Whether our line `seq` is too far beyond what `member` acknowledged."""
        return not self._keeps_up(self._me, member, seq)

    def _keeps_up(self, author: bytes, member: bytes, seq: int) -> bool:
        return seq - self._marks.of(author, member) <= limits.CHAT_UNANSWERED_MAX

    def _relays_of(self, author: bytes) -> tuple[bytes, ...]:
        others = (member for member in self.linked if member != author)
        return tuple(member for member in others if self._large or not self.meets(member, author))

    def _some(self, members: list[bytes]) -> list[bytes]:
        return self._rng.sample(members, min(len(members), limits.CHAT_PUSH_SOME))
