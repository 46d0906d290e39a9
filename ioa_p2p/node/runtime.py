"""The driver: feeds a pure machine and carries its effects out.

    input, now ──> machine ──> [effects] ──> Committer (saves durable, in groups) ──> sends, timers, emits
                      ^                                                                   │
                      └──────────────── timers, and what the node makes of events <───────┘

One Driver a machine, one Committer a node. Effect lists of one machine take effect in order: a list without
saves still waits for the saves before it, so nothing overtakes. While the disk refuses (full, slow), lists
wait, so nothing leaves unsaved; at `PENDING_MAX` waiting lists new messages are dropped and counted.
"""

import asyncio
import heapq
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ioa_p2p.effects import Effect, Emit, Machine, Now, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, StorageError
from ioa_p2p.storage.base import Storage

PENDING_MAX = 10_000  # effect lists waiting for the disk; beyond, messages are dropped (peers repeat)
TICK_S = 1.0  # the longest sleep between looks at the boot clock, so that timers fire soon after a suspend
RETRY_S = 1.0  # pause before a failed commit, or a timer that failed, is tried again

log = logging.getLogger(__name__)


class Committer:
    """Group commit on a thread of its own: all that is pending when the disk is free goes in one group. So does all
    that waited for a disk that refused: then a run and its end, decided meanwhile, are told in one breath.

    `on_health(None | StorageError)` hears of a disk that refuses and of its recovery.
    """

    def __init__(self, storage: Storage, on_health: Callable[[StorageError | None], None]) -> None:
        self._storage = storage
        self._on_health = on_health
        self._pending: list[tuple[Sequence[Save], Callable[[], None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="storage")

    @property
    def waiting(self) -> int:
        return len(self._pending)

    def submit(self, saves: Sequence[Save], then: Callable[[], None]) -> None:
        """Call `then` on the loop once `saves`, and all submitted before, are durable."""
        self._pending.append((saves, then))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """Wait up to 5 s for what is pending, then end the thread."""
        running = self._task  # it sets itself to None when all is saved
        if running is not None:
            await asyncio.wait([running], timeout=5.0)
            running.cancel()
        self._thread.shutdown(wait=True)

    async def _run(self) -> None:
        failed = False
        while self._pending:
            group = list(self._pending)
            fault = await self._fault_of([save for saves, _ in group for save in saves])
            if fault is not None:  # an unsaved promise must not leave, and what takes it back goes in the same group
                failed = True
                self._on_health(fault)
                await asyncio.sleep(RETRY_S)
                continue
            del self._pending[: len(group)]
            if failed:
                failed = False
                self._on_health(None)
            for _, then in group:
                then()
        self._task = None

    async def _fault_of(self, saves: list[Save]) -> StorageError | None:
        """What kept them from being saved: the disk's fault, or a bug of ours."""
        if not saves:
            return None
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._storage.commit, saves)
        except Exception as fault:  # either way nobody may believe it saved
            return fault if isinstance(fault, StorageError) else StorageError("internal", repr(fault))
        return None


class Driver:
    """Runs one machine. Inputs never raise for a peer's fault: it is counted in `faults` by its code.

    send(to, message) and emit(event) are called after the saves of their list are durable.
    """

    def __init__(
        self,
        machine: Machine,
        committer: Committer,
        clock: Callable[[], Now],
        send: Callable[[Any, Any], None],
        emit: Callable[[Any], None],
    ) -> None:
        self.machine = machine
        self.faults: Counter[str] = Counter()
        self._committer = committer
        self._clock = clock
        self._send = send
        self._emit = emit
        self._waiting = 0
        self._timers: dict[str, float] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._order = itertools.count()
        self._handle: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        self._push(self.machine.start(self._clock()))

    def close(self) -> None:
        """No input or effect after this one; what is already submitted is still saved."""
        self._closed = True
        if self._handle is not None:
            self._handle.cancel()

    def message(self, peer: Any, message: Any) -> str:
        """Feed one message. The code of what was wrong with it, or empty; "overloaded" and "internal" are ours."""
        if self._closed or self._waiting > PENDING_MAX:
            self.faults["overloaded"] += 1
            return "overloaded"
        try:
            self._push(self.machine.handle_message(self._clock(), peer, message))
        except PeerError as fault:
            self.faults[fault.code] += 1
            return fault.code
        except Exception:
            self.faults["internal"] += 1
            log.exception("a message made the %s machine fail; it is dropped", type(self.machine).__name__)
            return "internal"
        return ""

    def command(self, command: Any) -> None:
        """Feed a command of our own. Raises UsageError as the machine does."""
        if not self._closed:
            self._push(self.machine.handle_command(self._clock(), command))

    # -- effects

    def _push(self, effects: list[Effect]) -> None:
        saves = [effect for effect in effects if isinstance(effect, Save)]
        if saves or self._waiting:
            self._waiting += 1
            self._committer.submit(saves, lambda: self._saved(effects))
        elif effects:
            self._act(effects)

    def _saved(self, effects: list[Effect]) -> None:
        self._waiting -= 1
        if not self._closed:
            self._act(effects)

    def _act(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._guard(self._send, effect.to, effect.message)
            elif isinstance(effect, SetTimer):
                self._set_timer(effect)
        for effect in effects:
            if isinstance(effect, Emit):
                self._guard(self._emit, effect.event)

    def _guard(self, call: Callable[..., None], *what: Any) -> None:
        """One send or event that fails takes no other with it, nor the Committer that all wait for."""
        try:
            call(*what)
        except Exception:
            self.faults["internal"] += 1
            log.exception("handling %s failed", type(what[-1]).__name__)

    # -- timers, by boot time

    def _set_timer(self, effect: SetTimer) -> None:
        if effect.at is None:
            self._timers.pop(effect.name, None)
            return
        self._timers[effect.name] = effect.at
        heapq.heappush(self._heap, (effect.at, next(self._order), effect.name))
        self._arm()

    def _arm(self) -> None:
        while self._heap and self._timers.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._heap and not self._closed:
            delay = self._heap[0][0] - self._clock().boot
            self._handle = asyncio.get_running_loop().call_later(min(max(delay, 0.0), TICK_S), self._fire)

    def _fire(self) -> None:
        self._handle = None
        due = self._clock().boot
        while self._heap and self._heap[0][0] <= due:
            at, _, name = heapq.heappop(self._heap)
            if self._timers.get(name) == at:
                del self._timers[name]
                self._run_timer(name)
        self._arm()

    def _run_timer(self, name: str) -> None:
        try:
            self._push(self.machine.handle_timer(self._clock(), name))
        except Exception:
            self.faults["internal"] += 1
            log.exception("timer %s of the %s machine failed", name, type(self.machine).__name__)
            self._set_timer(SetTimer(name, self._clock().boot + RETRY_S))  # or what it drives would stop for good
