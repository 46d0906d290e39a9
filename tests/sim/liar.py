"""A node that seems to live: it proves its address, says that it keeps everything, and answers searches as it likes."""

from abc import ABC, abstractmethod
from typing import Any

from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.wire import dht as wire
from ioa_p2p.wire.dht import Contact

Search = wire.FindNode | wire.FindRecord | wire.FindPointers
Told = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Frames, packed contacts."""


class Liar(ABC):
    """Say by `answer` what it tells whoever searches; None for silence."""

    @abstractmethod
    def answer(self, search: Search) -> Told | None: ...

    def start(self, now: Now) -> list[Effect]:
        return []

    def handle_message(self, now: Now, peer: Contact, message: Any) -> list[Effect]:
        match message:
            case wire.Ping():
                seen = wire.pack_endpoint(peer.host, peer.port)
                return [Send(peer, wire.Pong(message.id, False, bytes(8), seen))]
            case wire.FindNode() | wire.FindRecord() | wire.FindPointers():
                told = self.answer(message)
                return [] if told is None else [Send(peer, wire.Found(message.id, False, bytes(8), *told))]
            case wire.Store():
                return [Send(peer, wire.Stored(message.id, False, wire.Verdict.KEPT))]
            case _:
                return []

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        return []

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        return []
