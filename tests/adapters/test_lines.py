"""The line protocol refuses whatever the wire could not carry."""

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.adapters import lines
from ioa_p2p.adapters.base import Delta, Failed, Progress, Task
from ioa_p2p.errors import AdapterError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.spending import Allowance, Spent

FILE = {"name": "a.png", "media_type": "image/png", "file": "made"}


def refusal(line: bytes) -> str:
    with pytest.raises(AdapterError) as caught:
        lines.read_event(line)
    return caught.value.code


@pytest.mark.parametrize(
    "line",
    [
        "hello, I am a program",
        "{",
        "[1, 2]",
        '"progress"',
        "{}",
        '{"progress": "half"}',
        '{"result": [1]}',
        '{"result": {"a": NaN}}',
        '{"result": {"a": 1e999}}',
        json.dumps({"result": {"a": 2**70}}),
        '{"result": {"a": "\\ud800"}}',
        '{"result": ' + '{"a":' * 20 + "1" + "}" * 21,
        "[" * 100_000,
        '{"result": {"a": ' + "9" * 5_000 + "}}",
        '{"failed": 5}',
        '{"result": {}, "attachments": "x"}',
        '{"result": {}, "attachments": [{"name": "a"}]}',
        '{"result": {}, "attachments": [{"name": "../a", "media_type": "t", "file": "a"}]}',
        '{"progress": 1, "spent": 900}',
        '{"progress": 1, "spent": {"tokens": -1}}',
        '{"progress": 1, "spent": {"money": 0.5}}',
        '{"result": {}, "spent": {"calls": 99999999999999999999999}}',
        b"\xff\xfe",
        "",
    ],
    ids=lambda line: ascii(line[:50]),
)
def test_nonsense_is_refused(line: str | bytes) -> None:
    assert refusal(line.encode() if isinstance(line, str) else line) == "bad-output"


def test_each_kind_of_line_is_read() -> None:
    assert lines.read_event(b'{"progress": 1, "note": "n", "new field": 1}') == Progress(1.0, "n")
    assert lines.read_event(b'{"delta": "text"}') == Delta("text")
    assert lines.read_event(b'{"failed": "why", "message": "m"}') == Failed("why", "m", retry=True)
    answer = lines.read_event(json.dumps({"result": {"a": 1}, "summary": "s", "attachments": [FILE]}).encode())
    assert answer == lines.Answer({"a": 1}, "s", (lines.File("a.png", "image/png", "made"),))


BOUNDED = [("-3", 0.0), ("7", 1.0), ("1e999", 1.0), ("1" + "0" * 400, 1.0), ("null", None)]


@pytest.mark.parametrize(("said", "meant"), BOUNDED)
def test_a_fraction_is_kept_between_0_and_1(said: str, meant: float | None) -> None:
    assert lines.read_event(b'{"progress": %s}' % said.encode()) == Progress(meant)


def test_what_a_run_spent_is_read_wherever_it_is_said() -> None:
    said, spent = b'"spent": {"tokens": 900, "money": 1200, "new": 1}', Spent(900, 1_200, 0)
    assert lines.read_event(b'{"progress": null, %b}' % said) == Progress(None, "", spent)
    assert lines.read_event(b'{"result": {}, %b}' % said) == lines.Answer({}, "", (), spent)
    assert lines.read_event(b'{"failed": "why", %b}' % said) == Failed("why", spent=spent)


def test_a_task_says_what_it_may_spend() -> None:
    task = Task(b"i" * 16, b"k" * 16, 1, "a.skill", "goal", budget=Allowance(900, None, 3))
    told = json.loads(lines.write_task(task, "/tmp", []))["task"]["budget"]
    assert told == {"tokens": 900, "money": None, "calls": 3}


def test_long_notes_and_half_characters_are_made_harmless() -> None:
    event = lines.read_event(json.dumps({"progress": None, "note": "\ud800" + "n" * 10_000}).encode())
    assert isinstance(event, Progress)
    assert event.note == "?" + "n" * (limits.ADAPTER_NOTE_CHARS_MAX - 1)
    assert lines.read_event(b'{"delta": "\\udfff"}') == Delta("?")


def test_too_many_attachments_are_refused() -> None:
    files = [FILE] * (limits.ATTACHMENTS_MAX + 1)
    assert refusal(json.dumps({"result": {}, "attachments": files}).encode()) == "oversized"


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a\\b", "a\nb", "a\0b", " a", "x" * 101, "a\u202eb"])
def test_an_attachment_name_is_a_plain_file_name(name: str) -> None:
    assert refusal(json.dumps({"result": {}, "attachments": [{**FILE, "name": name}]}).encode()) == "bad-output"


@given(st.binary(max_size=200))
def test_random_bytes_never_raise_anything_else(line: bytes) -> None:
    with contextlib.suppress(AdapterError):
        lines.read_event(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(categories=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_what_passes_can_go_on_the_wire_and_be_shown_as_json(value: object) -> None:
    try:
        event = lines.read_event(json.dumps({"result": {"a": value}}).encode())
    except AdapterError:
        return
    assert isinstance(event, lines.Answer)
    assert codec.read_any(codec.encode(event.outputs)) == event.outputs
    json.dumps(event.outputs, allow_nan=False)


@pytest.mark.parametrize("value", [b"bytes", math.nan, {1, 2}, object()])
def test_a_task_that_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(AdapterError) as caught:
        lines.write_task(Task(b"i", b"k", 1, "s", "goal", {"type": [value]}), "/folder", [])
    assert caught.value.code == "bad-input"


def test_a_task_is_one_line_whatever_its_text() -> None:
    written = lines.write_task(Task(b"\x01", b"\x02", 3, "s", 'a\nb"\u2028', {"t": ["\n"]}), "/folder", [])
    assert written.count(b"\n") == 1
    assert written.endswith(b"\n")
    told = json.loads(written)["task"]
    assert (told["id"], told["key"], told["attempt"], told["goal"]) == ("01", "02", 3, 'a\nb"\u2028')
