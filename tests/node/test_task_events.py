"""Numbered events of one task: nobody who comes back misses some without being told."""

import asyncio
from typing import Any

import pytest

from ioa_p2p.node.task_events import TaskEvents
from ioa_p2p.wire import limits

Event = dict[str, Any]


def event(state: str = "running") -> Event:
    return {"kind": "task", "state": state}


async def heard(events: TaskEvents, after: int | None) -> list[Event]:
    told: list[Event] = []
    follower = asyncio.ensure_future(events.follow(told.append, after))
    await asyncio.sleep(0)
    events.tell(event("succeeded"))
    await asyncio.wait_for(follower, 5)
    return told


@pytest.mark.parametrize(("after", "numbers"), [(None, [1, 2, 3, 4]), (0, [1, 2, 3, 4]), (2, [3, 4]), (3, [4])])
async def test_a_watcher_hears_what_came_after_its_number_then_more(after: int | None, numbers: list[int]) -> None:
    events = TaskEvents()
    for _ in range(3):
        events.tell(event())
    assert [one["seq"] for one in await heard(events, after)] == numbers


async def test_what_is_no_longer_kept_is_told_as_a_gap() -> None:
    events = TaskEvents()
    for _ in range(limits.TASK_EVENTS_KEPT + 10):
        events.tell(event())
    gap, *rest = await heard(events, 4)
    assert gap == {"kind": "gap", "from": 5, "to": 10}
    assert [one["seq"] for one in rest] == list(range(11, limits.TASK_EVENTS_KEPT + 12))
    assert (await heard(events, limits.TASK_EVENTS_KEPT))[0]["kind"] == "task"


async def test_a_watcher_that_hangs_up_hears_no_more() -> None:
    events, told = TaskEvents(), list[Event]()
    follower = asyncio.ensure_future(events.follow(told.append, None))
    await asyncio.sleep(0)
    follower.cancel()
    await asyncio.wait([follower])
    events.tell(event())
    assert told == []


async def test_an_orphan_is_no_end() -> None:
    events = TaskEvents()
    events.tell({"kind": "orphan", "state": "succeeded"})
    assert len(await heard(events, None)) == 2
