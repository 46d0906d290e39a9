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
        self._agreeing: set[bytes] = set()

    def hear(self, peer: bytes, seq: int, head: int, others: Collection[bytes]) -> None:
        """`peer` holds our chain up to `seq`, we up to `head`. others: the other members."""
        if not self.raised:
            return
        (self._agreeing.add if seq <= head else self._agreeing.discard)(peer)
        self.raised = 2 * len(self._agreeing.intersection(others)) < len(others)
