"""Whether our own chain may be longer than we remember: then nothing is said until half of the others were heard.

    disk lost, or put back ── doubted ── frontiers of half of the other members, none of whom holds more ──> speaks

What they hold more of our chain is pulled as any other's. A line that nobody of them got stays unknown: said again
under its number it shows as a fork, which everybody is told of.
"""

from collections.abc import Collection


class Doubt:
    """raised: about our own chain, at a member that lost its memory."""

    def __init__(self) -> None:
        self.raised = False
        self._held: dict[bytes, int] = {}

    def hear(self, peer: bytes, seq: int) -> None:
        """`peer` holds our chain up to `seq`."""
        self._held[peer] = seq

    def lasts(self, head: int, others: Collection[bytes]) -> bool:
        """head: how far we hold our chain now. others: the other members."""
        agreeing = sum(peer in others and seq <= head for peer, seq in self._held.items())
        self.raised = self.raised and 2 * agreeing < len(others)
        return self.raised
