"""Which other members of a team this one can reach, and which were heard in it at all."""

from collections.abc import Iterable


class Links:
    """unheard: may not know that the team stands. down: their link to us is lost."""

    def __init__(self, others: Iterable[bytes]) -> None:
        self.unheard = set(others)
        self.down: set[bytes] = set()

    def set(self, node: bytes, *, up: bool) -> bool:
        """True if that is news. One that is linked again may have lost its disk meanwhile, and the team with it."""
        is_news = (node in self.down) is up
        (self.down.discard if up else self.down.add)(node)
        if up:
            self.unheard.add(node)
        return is_news

    def hear(self, node: bytes) -> None:
        self.unheard.discard(node)

    def admit(self, node: bytes) -> None:
        self.unheard.add(node)

    def drop(self, node: bytes) -> None:
        self.unheard.discard(node)
        self.down.discard(node)
