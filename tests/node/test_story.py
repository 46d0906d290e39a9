"""A team's story: told once in order, to early and late watchers alike."""

import asyncio
from typing import Any

from ioa_p2p.node import story
from ioa_p2p.node.story import Stories, Story


def task(fraction: float, state: str = "running") -> dict[str, Any]:
    return {"kind": "task", "task": "aa", "attempt": 1, "state": state, "fraction": fraction}


async def test_a_late_watcher_hears_the_past_then_the_rest_then_the_result() -> None:
    tale = Story(b"t" * 16)
    tale.tell({"kind": "started"})
    heard: list[dict[str, Any]] = []
    follower = asyncio.ensure_future(tale.follow(heard.append))
    await asyncio.sleep(0)
    tale.tell({"kind": "phase", "phase": "PAUSE"})
    tale.end({"outcome": "concluded"})
    assert await follower == {"outcome": "concluded"}
    assert [event["kind"] for event in heard] == ["started", "phase"]


async def test_progress_of_one_task_is_kept_once_but_told_each_time() -> None:
    tale = Story(b"t" * 16)
    heard: list[dict[str, Any]] = []
    follower = asyncio.ensure_future(tale.follow(heard.append))
    await asyncio.sleep(0)
    for fraction in (0.1, 0.2, 0.3):
        tale.tell(task(fraction))
    tale.tell(task(1.0, "succeeded"))
    follower.cancel()
    assert [event["fraction"] for event in heard] == [0.1, 0.2, 0.3, 1.0]
    assert [event["fraction"] for event in tale.events] == [0.3, 1.0]


async def test_the_first_end_stands() -> None:
    tale = Story(b"t" * 16)
    tale.end({"outcome": "concluded"})
    tale.end({"outcome": "failed"})
    assert await tale.follow(lambda event: None) == {"outcome": "concluded"}


async def test_a_detached_asker_is_answered_when_the_roster_stands() -> None:
    tale = Story(b"t" * 16)
    founded = asyncio.ensure_future(tale.founded(lambda event: None))
    await asyncio.sleep(0)
    tale.tell({"kind": "roster", "members": []})
    assert (await founded)["outcome"] == "detached"


def test_ended_teams_make_room_before_running_ones(monkeypatch: Any) -> None:
    monkeypatch.setattr(story, "STORIES_MAX", 2)
    stories = Stories()
    running, ended = stories.of(b"1" * 16), stories.of(b"2" * 16)
    ended.end({"outcome": "concluded"})
    stories.of(b"3" * 16)
    assert [one.team[:1] for one in stories.all()] == [b"1", b"3"]
    assert stories.get(b"1" * 16) is running
