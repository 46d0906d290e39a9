"""The driver: saves before sends, lists in order, timers by the boot clock, faults counted."""

import asyncio
from typing import Any

import pytest

from ioa_p2p.effects import Effect, Emit, Now, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, StorageError
from ioa_p2p.node.runtime import RETRY_S, Committer, Driver
from ioa_p2p.storage.memory import MemoryStorage


class Echo:
    """A machine that answers each message with the effects it holds."""

    def __init__(self) -> None:
        self.failures = [False, True, True]  # of the timer "buggy", from the last to the first

    def start(self, now: Now) -> list[Effect]:
        return [SetTimer("start", now.boot)]

    def handle_message(self, now: Now, peer: Any, message: Any) -> list[Effect]:
        if message == "bad":
            raise PeerError("bad-word")
        if message == "bug":
            raise AssertionError("ours")
        return message

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        if name == "buggy" and self.failures.pop():
            raise AssertionError("ours")
        return [Emit(("timer", name))]

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        return command


class Log(list[Any]):
    """A list one can wait on."""

    def __init__(self) -> None:
        self.grown = asyncio.Event()

    def append(self, item: Any) -> None:
        super().append(item)
        self.grown.set()


class Rig:
    """A driver over memory storage that writes down what happens, in order."""

    def __init__(self, storage: Any = None) -> None:
        self.log = Log()
        self.boot = 100.0
        self.storage = storage or MemoryStorage()
        self.health: list[StorageError | None] = []
        commit, loop = self.storage.commit, asyncio.get_running_loop()

        def logged(saves: list[Save]) -> None:
            commit(saves)
            loop.call_soon_threadsafe(self.log.append, ("saved", len(saves)))

        self.storage.commit = logged
        self.committer = Committer(self.storage, self.health.append)
        self.driver = Driver(
            Echo(),
            self.committer,
            lambda: Now(0.0, self.boot),
            lambda to, message: self.log.append(("sent", message)),
            lambda event: self.log.append(event),
        )

    async def until(self, what: Any) -> None:
        async with asyncio.timeout(5):
            while what not in self.log:
                self.log.grown.clear()
                await self.log.grown.wait()


SAVE = Save("s", b"k", b"v")


async def test_a_save_is_durable_before_any_send_of_its_list_leaves() -> None:
    rig = Rig()
    rig.driver.message("p", [Send("p", 1), Emit("told"), SAVE])
    assert rig.log == []
    await rig.until("told")
    assert rig.log == [("saved", 1), ("sent", 1), "told"]


async def test_a_list_without_saves_does_not_overtake_one_with_saves() -> None:
    rig = Rig()
    rig.driver.message("p", [SAVE, Send("p", 1)])
    rig.driver.message("p", [Send("p", 2)])
    await rig.until(("sent", 2))
    assert rig.log == [("saved", 1), ("sent", 1), ("sent", 2)]


async def test_saves_of_one_batch_share_one_commit() -> None:
    rig = Rig()
    for n in range(10):
        rig.driver.message("p", [SAVE, Send("p", n)])
    await rig.until(("sent", 9))
    assert rig.log[0] == ("saved", 10)


async def test_a_list_without_saves_acts_at_once() -> None:
    rig = Rig()
    rig.driver.message("p", [Send("p", 1)])
    assert rig.log == [("sent", 1)]


async def test_a_peers_fault_is_counted_and_our_own_does_not_kill_the_driver() -> None:
    rig = Rig()
    assert rig.driver.message("p", "bad") == "bad-word"
    assert rig.driver.message("p", "bug") == "internal"
    assert rig.driver.faults == {"bad-word": 1, "internal": 1}
    assert rig.driver.message("p", [Emit("alive")]) == ""
    assert rig.log == ["alive"]


async def test_nothing_leaves_while_the_disk_refuses_and_all_leaves_when_it_recovers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ioa_p2p.node.runtime.RETRY_S", 0.01)
    assert RETRY_S == 1.0
    refusing = MemoryStorage()
    answers = iter([StorageError("disk-full"), StorageError("disk-full"), None])
    commit = refusing.commit

    def full_twice(saves: list[Save]) -> None:
        answer = next(answers)
        if answer:
            raise answer
        commit(saves)

    refusing.commit = full_twice  # type: ignore[method-assign]
    rig = Rig(refusing)
    rig.driver.message("p", [SAVE, Send("p", 1)])
    await rig.until(("sent", 1))
    assert [fault and fault.code for fault in rig.health] == ["disk-full", "disk-full", None]
    assert rig.log == [("saved", 1), ("sent", 1)]


async def test_what_comes_while_the_disk_refuses_is_saved_with_what_waited_and_told_in_one_breath(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that was given out and taken back meanwhile must not begin in between."""
    monkeypatch.setattr("ioa_p2p.node.runtime.RETRY_S", 0.01)
    full, told = MemoryStorage(), asyncio.Event()
    commit = full.commit

    def refuse(saves: list[Save]) -> None:
        if not told.is_set():
            raise StorageError("disk-full")
        commit(saves)

    full.commit = refuse  # type: ignore[method-assign]
    rig = Rig(full)
    rig.driver.message("p", [SAVE, Emit("start")])
    async with asyncio.timeout(5):
        while not rig.health:
            await asyncio.sleep(0)
    rig.driver.message("p", [Save("s", b"l", b"v"), Emit("stop")])
    told.set()
    await rig.until("stop")
    assert rig.log == [("saved", 2), "start", "stop"]


async def test_a_timer_set_again_fires_once_and_a_disarmed_one_never() -> None:
    rig = Rig()
    rig.driver.message("p", [SetTimer("a", 100.0), SetTimer("b", 100.0)])
    rig.driver.message("p", [SetTimer("a", 100.0), SetTimer("b", None), SetTimer("end", 100.0)])
    await rig.until(("timer", "end"))
    assert rig.log == [("timer", "a"), ("timer", "end")]


async def test_a_timer_waits_for_the_boot_clock_not_for_the_loops() -> None:
    rig = Rig()
    rig.driver.message("p", [SetTimer("late", 100.5)])
    rig.boot = 4_000.0  # the machine slept for an hour
    await rig.until(("timer", "late"))


async def test_a_closed_driver_takes_nothing_more() -> None:
    rig = Rig()
    rig.driver.message("p", [SetTimer("a", 100.0)])
    rig.driver.close()
    assert rig.driver.message("p", [Emit("late")]) == "overloaded"
    await rig.committer.aclose()
    assert rig.log == []


async def test_a_send_that_fails_takes_nothing_else_with_it() -> None:
    rig = Rig()
    send = rig.driver._send

    def spoilt(to: Any, message: Any) -> None:
        if message == "unsayable":
            raise TypeError("no bytes for this")
        send(to, message)

    rig.driver._send = spoilt
    first = [Save("s", b"k", b"v"), Send("x", "unsayable"), Send("x", "next"), Emit("told")]
    assert rig.driver.message("peer", first) == ""
    await rig.until("told")
    assert rig.driver.message("peer", [Save("s", b"k", b"w"), Send("x", "later"), Emit("again")]) == ""
    await rig.until("again")
    assert ("sent", "next") in rig.log
    assert ("sent", "later") in rig.log
    assert rig.driver.faults["internal"] == 1


async def test_a_save_that_is_no_save_is_never_taken_for_saved_and_is_seen() -> None:
    class Broken(MemoryStorage):
        def commit(self, saves: Any) -> None:
            raise TypeError("not bytes")

    rig = Rig(Broken())
    rig.driver.message("peer", [Save("s", b"k", b"v"), Send("x", "promise")])
    async with asyncio.timeout(5):
        while not rig.health:
            await asyncio.sleep(0)
    assert rig.health[0] is not None
    assert rig.health[0].code == "internal"
    assert rig.log == []
    await rig.committer.aclose()


async def test_a_timer_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ioa_p2p.node.runtime.RETRY_S", 0.0)
    rig = Rig()
    rig.driver.message("p", [SetTimer("buggy", 100.0)])
    await rig.until(("timer", "buggy"))
    assert rig.driver.faults == {"internal": 2}
