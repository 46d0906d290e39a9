"""What a state machine asks of the world: Save, Send, SetTimer, Emit.

    driver ── message | timer | command, now ──> machine ── [effects] ──> driver
                                                  (pure: no IO, no clock, no dice)

A machine returns a list of effects; the driver carries them out **in this order, whatever the order in
the list**: every Save of the list is durable before its first Send leaves, then timers, then Emits
(ARCHITECTURE decision 6, "save before send").
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Now(NamedTuple):
    """The time a machine is handed. It never reads a clock itself.

    wall: unix seconds, for signed windows (issued, expires, deadline) only; may jump.
    boot: seconds since the OS booted, suspend included (CLOCK_BOOTTIME); for leases and timeouts.
    """

    wall: float
    boot: float


@dataclass(frozen=True, slots=True)
class Save:
    """Write `value` under (`space`, `key`), durably, before any Send of the same list.

    `space` names a table-like group ("log/<team hex>"), `key` orders rows within it (bytewise).
    `value` None deletes the row.
    """

    space: str
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Send:
    """Hand `message` to `to`. Never waits; may be lost; the machine repeats what must arrive.

    to: a node's public key (32 B) for link traffic, a `wire.dht.Contact` for DHT datagrams.
    message: a typed wire message; the driver encodes, seals and frames it.
    """

    to: Any
    message: Any


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `handle_timer(now, name)` at boot time `at` (seconds); None disarms. One timer a name."""

    name: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell the driver something happened. `event` is a frozen dataclass of the machine's own."""

    event: Any


Effect = Save | Send | SetTimer | Emit


Rows = Callable[[str], Sequence[tuple[bytes, bytes]]]
"""What was saved: space -> (key, value) rows in key order. Handed to a machine when it is made."""


class Machine(Protocol):
    """A pure state machine. Every input comes with `now`; every output is an effect."""

    def start(self, now: Now) -> list[Effect]:
        """First effects after construction (timers, announcements)."""
        ...

    def handle_message(self, now: Now, peer: Any, message: Any) -> list[Effect]:
        """A typed message from `peer` (who is authenticated). Raises PeerError for a peer's fault,
        with no state changed."""
        ...

    def handle_timer(self, now: Now, name: str) -> list[Effect]: ...

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        """A typed command of our own side. Raises UsageError for the caller's fault."""
        ...
