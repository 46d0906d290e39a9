"""The line protocol between a node and an agent's process: one JSON object a line, on stdin and stdout.

    node ──> {"task": {"id", "key", "attempt", "skill", "goal", "inputs", "attachments", "deadline_s", "folder",
                       "budget"}}
    node ──> {"cancel": true}
             {"progress": 0.4, "note": "reading"} <── agent      (any number; fraction 0..1 or null)
             {"delta": "some text"}               <── agent      (any number)
             {"result": {"type.name": value}, "summary": "", "attachments": [FILE, ...]}  <── agent   (ends the run)
             {"failed": "no-sensor", "message": "", "retry": false}                       <── agent   (ends the run)

All but a delta may say `"spent": {"tokens": 900, "money": 1200, "calls": 1}`, what this run used so far, money in
millionths. `budget` has the same keys, null where nothing limits; a run that tells of more is stopped.
FILE is `{"name": "chart.png", "media_type": "image/png", "file": "chart.png"}`; `file` is a plain file name in the
task's `folder`. `id` and `key` are hex. What an agent writes is untrusted: typed, bounded, nested at most
`limits.NESTING_MAX` deep.
"""

import json
import math
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from ioa_p2p.adapters.base import Delta, Failed, Progress, Task
from ioa_p2p.errors import AdapterError, PeerError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.spending import NOTHING, Spent

CANCEL = b'{"cancel":true}\n'


@dataclass(frozen=True, slots=True)
class File:
    """An attachment as a line names it; `file` lies in the task's folder."""

    name: str
    media_type: str
    file: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A result whose attachments are still files."""

    outputs: dict[str, Any]
    summary: str
    files: tuple[File, ...]
    spent: Spent = NOTHING


Line = Progress | Delta | Answer | Failed


def write(value: dict[str, Any]) -> bytes:
    """One line. Raises AdapterError('bad-input') for a value that JSON cannot say."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as fault:
        raise AdapterError("bad-input", f"not a JSON value: {fault}") from None


def write_task(task: Task, folder: str, files: list[File]) -> bytes:
    """The line that starts a run."""
    fields = {
        "id": task.id.hex(),
        "key": task.key.hex(),
        "attempt": task.attempt,
        "skill": task.skill,
        "goal": task.goal,
        "inputs": task.inputs,
        "attachments": [{"name": file.name, "media_type": file.media_type, "file": file.file} for file in files],
        "deadline_s": task.deadline_s,
        "folder": folder,
        "budget": {kind: getattr(task.budget, kind) for kind in ("tokens", "money", "calls")},
    }
    return write({"task": fields})


def read(line: bytes) -> dict[str, Any]:
    """The object of one line. Raises AdapterError('bad-output')."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise _bad(f"not JSON: {_shown(line)} ({type(fault).__name__})") from None
    if not is_object(value):
        raise _bad(f"not a JSON object: {_shown(line)}")
    return value


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """True for what JSON calls an object; its keys are always text."""
    return isinstance(value, dict)


def read_event(line: bytes) -> Line:
    """What an agent says. Raises AdapterError('bad-output' | 'oversized')."""
    fields = read(line)
    match fields:
        case {"progress": float() | int() | None as fraction}:
            return Progress(_fraction(fraction), _text(fields, "note"), _spent(fields))
        case {"delta": str() as text}:
            return Delta(_utf8(text))
        case {"result": outputs} if is_object(outputs):
            summary = _text(fields, "summary", limits.SUMMARY_CHARS_MAX)
            return Answer(_checked(outputs), summary, _files(fields), _spent(fields))
        case {"failed": str() as code}:
            message, retry = _utf8(str(fields.get("message", "")))[:2_000], fields.get("retry") is not False
            return Failed(_utf8(code)[:64], message, retry, _spent(fields))
        case _:
            raise _bad(f"no progress, delta, result or failed in {_shown(line)}")


def _spent(fields: dict[str, Any]) -> Spent:
    """Raises AdapterError for what are no amounts: a budget cannot be kept by guesses."""
    told = fields.get("spent")
    if told is None:
        return NOTHING
    if not is_object(told):
        raise _bad("spent is not an object")
    try:
        return codec.decode(codec.encode([told.get(kind, 0) for kind in ("tokens", "money", "calls")]), Spent)
    except (PeerError, OverflowError, ValueError) as fault:
        raise _bad(f"spent needs whole numbers of tokens, money and calls ({fault})") from None


def _checked(outputs: dict[str, Any]) -> dict[str, Any]:
    """Outputs that the wire can carry: not too deep, finite numbers of 64 bits, real text."""
    _check_nesting(outputs, limits.NESTING_MAX)
    try:
        codec.encode(outputs)
    except (ValueError, OverflowError) as fault:
        raise _bad(f"the result does not fit the wire: {fault}") from None
    return outputs


def _check_nesting(value: Any, levels: int) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise _bad("a number of the result is not finite")
    if is_object(value):
        value = list(value.values())
    if isinstance(value, list):
        if levels == 0:
            raise _bad(f"a result nested deeper than {limits.NESTING_MAX}")
        for each in cast(list[Any], value):
            _check_nesting(each, levels - 1)


def _files(fields: dict[str, Any]) -> tuple[File, ...]:
    """Raises AdapterError for too many files or a wrong shape; the folder is looked at elsewhere."""
    try:
        found = codec.decode(codec.encode(fields.get("attachments", [])), list[dict[str, str]])
        files = tuple(File(_name(each["name"]), each["media_type"][:100], each["file"]) for each in found)
    except (PeerError, KeyError, ValueError) as fault:
        raise _bad(f"attachments need name, media_type and file ({fault})") from None
    if len(files) > limits.ATTACHMENTS_MAX:
        raise AdapterError("oversized", f"{len(files)} attachments, at most {limits.ATTACHMENTS_MAX}")
    return files


def _name(name: str) -> str:
    """A name that is safe as a file name wherever it is stored later."""
    if not is_file_name(name):
        raise _bad(f"not a plain file name: {name[:100]!r}")
    return name


def is_file_name(name: str) -> bool:
    """Letters, digits, space and `._-+()`; no folder, no leading dot, not too long."""
    plain = all(letter.isalnum() or letter in " ._-+()" for letter in name)
    size = len(name.encode("utf-8", "replace"))  # file systems count bytes
    return plain and 0 < size <= limits.ATTACHMENT_NAME_CHARS_MAX and name[0] not in ". "


def _fraction(value: float | None) -> float | None:
    return None if value is None else float(min(1.0, max(0.0, value)))


def _text(fields: dict[str, Any], name: str, chars_max: int = limits.ADAPTER_NOTE_CHARS_MAX) -> str:
    return _utf8(str(fields.get(name, "")))[:chars_max]


def _utf8(text: str) -> str:
    """JSON may smuggle half a surrogate pair in; the wire cannot carry it."""
    return text.encode("utf-8", "replace").decode()


def _shown(line: bytes) -> str:
    return repr(line[:80].decode("utf-8", "replace"))


def _bad(message: str) -> AdapterError:
    return AdapterError("bad-output", message)
