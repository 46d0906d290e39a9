"""Nodes of two versions in one world: the newer one appends a field to all that it says, and knows one step more.

newer ── message, step, each with one field more ──> older: skips it        newer ── LATER ──> older: cannot read it
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ioa_p2p.effects import Effect, Now
from ioa_p2p.team import coordinator
from ioa_p2p.team.machine import Teams
from ioa_p2p.wire import codec
from ioa_p2p.wire import step as steps
from ioa_p2p.wire.step import Step

LATER = codec.encode(("later", 1))
"""A step of the kind that only the newer version knows; there it changes nothing."""


def of_two_versions(newer: set[bytes], part: Any = Teams) -> Callable[..., Teams]:
    """Nodes that are of the newer version once they are in `newer`."""

    class Mixed(part):
        def start(self, now: Now) -> list[Effect]:
            with version(self._key.node in newer):
                return super().start(now)

        def handle_message(self, now: Now, peer: Any, message: Any) -> list[Effect]:
            with version(self._key.node in newer):
                return super().handle_message(now, peer, longer(message) if peer in newer else message)

        def handle_timer(self, now: Now, name: str) -> list[Effect]:
            with version(self._key.node in newer):
                return super().handle_timer(now, name)

        def handle_command(self, now: Now, command: Any) -> list[Effect]:
            with version(self._key.node in newer):
                return super().handle_command(now, command)

    return Mixed


@contextmanager
def version(newer: bool) -> Iterator[None]:
    """What runs inside is of this version."""
    if not newer:
        yield
        return
    kinds, encode = steps.KINDS, coordinator.encode_step
    steps.KINDS, coordinator.encode_step = kinds | {"later"}, longer_step
    try:
        yield
    finally:
        steps.KINDS, coordinator.encode_step = kinds, encode


def longer(message: Any) -> Any:
    """What an older member makes of a newer one's message."""
    return codec.decode(_appended(codec.encode(message)), type(message))


def longer_step(step: Step) -> bytes:
    return _appended(codec.encode(step))


def _appended(data: bytes) -> bytes:
    return codec.encode([*codec.read_any(data), "a field of a newer version"])
