"""Whom we want to be linked to, and when to dial next. Pure: time and dice are handed in.

    connect ──> wanted ── due ──> dialling ── linked ──> (quiet while the link stands)
                  ^                  │ failed                  │ lost
                  └── back-off ──────┴─────────────────────────┘      forget, from anywhere: gone

Back-off doubles from LINK_BACKOFF_S to LINK_BACKOFF_S_MAX, +- half, so that a crowd does not return as one.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ioa_p2p.wire import limits


@dataclass(slots=True)
class Want:
    """One peer we try to stay linked to.

    at: when the next dial is due. failures: dials in a row that led nowhere. dialling: the addresses of the dial
    under way. linked_since: when the link that stands began.
    """

    addresses: tuple[str, ...]
    at: float
    failures: int = 0
    dialling: tuple[str, ...] | None = None
    linked_since: float | None = None


class Dialer:
    """The wants of one node, at most LINK_WANTS_MAX."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._wants: dict[bytes, Want] = {}

    def connect(self, now: float, peer: bytes, addresses: Sequence[str]) -> bool:
        """Want `peer`. New addresses replace the old and are due at once. False: too many wants."""
        want = self._wants.get(peer)
        if want is None:
            if len(self._wants) >= limits.LINK_WANTS_MAX:
                return False
            self._wants[peer] = Want(tuple(addresses), at=now)
        elif want.addresses != tuple(addresses):
            want.addresses, want.at, want.failures = tuple(addresses), now, 0
        return True

    def forget(self, peer: bytes) -> None:
        self._wants.pop(peer, None)

    def wants(self, peer: bytes) -> bool:
        return peer in self._wants

    def dialling(self, peer: bytes) -> bool:
        want = self._wants.get(peer)
        return want is not None and want.dialling is not None

    def due(self, now: float) -> list[tuple[bytes, tuple[str, ...]]]:
        """Peers to dial now, with their addresses; each is `dialling` until linked, failed or lost."""
        due = [
            (peer, want)
            for peer, want in self._wants.items()
            if want.at <= now and want.dialling is None and want.linked_since is None
        ]
        for _, want in due:
            want.dialling = want.addresses
        return [(peer, want.addresses) for peer, want in due]

    def linked(self, now: float, peer: bytes) -> None:
        """A link to `peer` stands, whoever dialled it."""
        want = self._wants.get(peer)
        if want is not None and want.linked_since is None:
            want.linked_since, want.dialling = now, None

    def failed(self, now: float, peer: bytes) -> None:
        """Our dial led nowhere."""
        want = self._wants.get(peer)
        if want is not None and want.dialling is not None:
            tried, want.dialling = want.dialling, None
            if tried == want.addresses:  # newer ones, come in the meantime, are due already
                self._back_off(now, want)

    def lost(self, now: float, peer: bytes) -> None:
        """The link is gone. One that stood for LINK_STEADY_S is dialled again soon, another backs off further."""
        want = self._wants.get(peer)
        if want is not None and want.linked_since is not None:
            if now - want.linked_since >= limits.LINK_STEADY_S:
                want.failures = 0
            want.linked_since = None
            self._back_off(now, want)

    def _back_off(self, now: float, want: Want) -> None:
        delay = min(limits.LINK_BACKOFF_S * 2**want.failures, limits.LINK_BACKOFF_S_MAX)
        want.failures = min(want.failures + 1, 16)
        want.at = now + delay * self._dice.uniform(0.5, 1.5)
