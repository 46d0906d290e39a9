"""T05: twenty kinds of forged, mismatched, replayed, expired and future records, 5,000 of each.

Mallory ── Store, with a good token ──> holder: 0 stored        every hundredth of hers is genuine: stored
Mallory ── Found, in answer ──────────> asker: 0 returned       replays of older versions: the newer ones stay
"""

import time
from typing import Any

from ioa_p2p.dht import commands, events
from ioa_p2p.effects import Send
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.dht import Contact, FindPointers, FindRecord, Found, Store, Verdict
from ioa_p2p.wire.frames import Kind
from tests.dht.test_machine import Driven, emitted, sends
from tests.sim.adversary.forgeries import KINDS, Forge, genuine
from tests.wire.samples import BOB, MALLORY

BARS = {"forged_stored": "== 0", "forged_returned": "== 0", "replays_stored": "== 0", "valid_kept": ">= 1"}
CPU_BARS = {"forged_cpu_us": "<= 200"}

MALLORYS = Contact(MALLORY.node, "127.0.0.1", 4_001)
VALID_EVERY = 100
READ_EVERY = 10


class Holder:
    """A machine that Mallory stores at, as fast as her budget allows, and that asks her for records."""

    def __init__(self) -> None:
        self.driven = Driven().met(MALLORYS)
        self.valid = self.valid_kept = self.stored = self.returned = 0
        self.cpu_s = 0.0

    @property
    def wall_s(self) -> int:
        return int(self.driven.now.wall)

    def store(self, raw: bytes) -> Verdict | None:
        """What became of it; None if it was refused."""
        self.driven.run(1 / limits.STORE_BUDGET[1])
        request = Store(1, True, self.driven.token(MALLORYS), raw)
        began_s = time.process_time()
        try:
            answer = self.driven.answer(request, MALLORYS)
        except PeerError:
            return None
        finally:
            self.cpu_s += time.process_time() - began_s
        return Verdict(answer.verdict)

    def attack(self, forge: Forge, times: int) -> float:
        """CPU seconds of one forgery, on average."""
        self.cpu_s = 0.0
        for number in range(times):
            raw = forge(number, self.wall_s)
            self.stored += self.store(raw) in (Verdict.KEPT, Verdict.KNOWN)
            if not number % READ_EVERY:
                self.returned += self.reads(raw)
        spent_s = self.cpu_s / times
        for _ in range(max(1, times // VALID_EVERY)):
            self.valid += 1
            self.valid_kept += (
                self.store(genuine(self.valid, self.wall_s, MALLORY, agent=f"true-{self.valid}")) is Verdict.KEPT
            )
        return spent_s

    def replay(self, times: int) -> int:
        """Older versions of what is held, which were genuine once: how many came back."""
        back = 0
        for number in range(times):
            old, new = (genuine(number % 100, self.wall_s, seq=2 * number + newer) for newer in (0, 1))
            self.store(new)
            back += self.store(old) is not Verdict.OLDER
        return back

    def reads(self, raw: bytes) -> bool:
        """Whether an asker believes it as the answer to a question for just that."""
        question = _question(raw)
        asked = self._ask(question) or (self.driven.met(MALLORYS) and self._ask(question))
        effects: list[Any] = self.driven.hear(MALLORYS, Found(asked[0].message.id, False, bytes(8), (raw,)))
        (found,) = [one for one in emitted(effects) if isinstance(one, events.RecordFound | events.PointersFound)]
        return found.record is not None if isinstance(found, events.RecordFound) else bool(found.pointers)

    def _ask(self, question: Any) -> list[Send]:
        effects = self.driven.command(question)
        return sends(effects, FindRecord) + sends(effects, FindPointers)


def _question(raw: bytes) -> commands.SearchRecord | commands.SearchPointers:
    """What the frame claims to answer, if that can be read."""
    try:
        frame = frames.parse(raw)
        node, agent = codec.read_any(frame.body)[:2]
    except PeerError:
        return commands.SearchRecord(1, BOB.node, "agent-0")
    if frame.kind is Kind.POINTER:
        return commands.SearchPointers(1, "skill:stats.outliers")
    return commands.SearchRecord(1, node, str(agent))


def run(short: bool) -> dict[str, float]:
    times = 20 if short else 5_000
    holder = Holder()
    cpu_us = {name: 1e6 * holder.attack(forge, times) for name, forge in KINDS.items()}
    return {
        "forged_stored": holder.stored,
        "forged_returned": holder.returned,
        "replays_stored": holder.replay(times),
        "valid_kept": holder.valid_kept / holder.valid,
        "forged_cpu_us": max(cpu_us.values()),
    }
