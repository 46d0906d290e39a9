"""The checker of histories: what it lets pass, and what it must refuse."""

import pytest

from tests.linear import Operation, Recorder, linearizable


def append(value: str, call_s: float, end_s: float | None) -> Operation:
    return Operation("append", value, call_s, end_s)


def read(values: str, call_s: float, end_s: float) -> Operation:
    return Operation("read", tuple(values), call_s, end_s)


SOUND = {
    "nothing": [],
    "one after the other": [append("a", 0, 1), read("a", 2, 3), append("b", 4, 5), read("ab", 6, 7)],
    "two at once, either way": [append("a", 0, 5), append("b", 0, 5), read("ba", 6, 7)],
    "a read during a write sees it": [append("a", 0, 9), read("a", 1, 2), read("a", 3, 4)],
    "a read during a write does not see it": [append("a", 0, 9), read("", 1, 2), read("a", 3, 4)],
    "an unknown write came to pass, later": [append("a", 0, None), read("", 1, 2), append("b", 3, 4), read("ba", 5, 6)],
    "an unknown write never came to pass": [append("a", 0, None), append("b", 1, 2), read("b", 3, 4)],
    "a write after the last read": [read("", 0, 1), append("a", 2, 3), append("b", 2, 3)],
}
BROKEN = {
    "a stale read": [append("a", 0, 1), append("b", 2, 3), read("a", 4, 5)],
    "a stale read after a fresh one": [append("a", 0, 9), read("a", 1, 2), read("", 3, 4)],
    "an acknowledged entry is lost": [append("a", 0, 1), append("b", 2, 3), read("b", 4, 5)],
    "two entries changed places": [append("a", 0, 1), append("b", 2, 3), read("ba", 4, 5)],
    "two reads disagree": [append("a", 0, 9), append("b", 0, 9), read("ab", 1, 5), read("ba", 1, 5)],
    "an entry comes twice": [append("a", 0, None), read("aa", 1, 2)],
    "an entry from nowhere": [append("a", 0, 1), read("ax", 2, 3)],
    "an entry before it was proposed": [read("a", 0, 1), append("a", 2, 3)],
}


@pytest.mark.parametrize("name", SOUND)
def test_what_one_register_could_have_done_is_let_pass(name: str) -> None:
    assert linearizable(SOUND[name])


@pytest.mark.parametrize("name", BROKEN)
def test_what_no_register_does_is_refused(name: str) -> None:
    assert not linearizable(BROKEN[name])


def test_a_recorder_keeps_what_happened_and_what_may_have() -> None:
    recorder = Recorder()
    failed, lost, kept = (recorder.invoke("append", value, 0.0) for value in "abc")
    unread = recorder.invoke("read", None, 0.5)
    seen = recorder.invoke("read", None, 2.0)
    recorder.fail(failed)
    recorder.ok(kept, 1.0)
    recorder.ok(seen, 3.0, ("c",))
    assert recorder.history == [append("c", 0.0, 1.0), read("c", 2.0, 3.0), append("b", 0.0, None)]
    assert (lost, unread) == (1, 3)


def test_many_operations_at_once_take_no_exponential_time() -> None:
    values = [f"v{i}" for i in range(60)]
    history = [append(value, i / 10, i / 10 + 2) for i, value in enumerate(values)]
    reads = [Operation("read", tuple(values[: i + 1]), i / 10 + 2, i / 10 + 2.05) for i in range(0, 60, 5)]
    unknown = [append(f"u{i}", i / 10, None) for i in range(60)]
    assert linearizable([*history, *reads, *unknown])
    assert not linearizable([*history, *reads, *unknown, Operation("read", tuple(values[:10]), 99, 100)])
