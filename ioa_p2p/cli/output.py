"""How the CLI speaks: data on stdout, talk on stderr, one JSON object a line with --json, redrawing only for people."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO, cast

from ioa_p2p.errors import IoaError


class Output:
    """data: what was asked for (stdout). talk: everything else (stderr). as_json: for scripts."""

    def __init__(self, *, as_json: bool = False, data: TextIO | None = None, talk: TextIO | None = None) -> None:
        self.as_json = as_json
        self._data = data or sys.stdout
        self._talk = talk or sys.stderr

    @property
    def is_live(self) -> bool:
        """A person watches, so a line may be redrawn."""
        return not self.as_json and self._talk.isatty() and os.environ.get("TERM") != "dumb"

    def event(self, event: Mapping[str, Any]) -> None:
        """One step of a long answer, for scripts."""
        if self.as_json:
            _write(self._data, json.dumps({"event": event}))

    def result(self, result: Mapping[str, Any], text: str = "") -> None:
        """The answer: `text` for people, `result` for scripts."""
        if self.as_json:
            _write(self._data, json.dumps({"ok": True, **result}))
        elif text:
            _write(self._data, printable(text))

    def line(self, text: str) -> None:
        """A piece of the answer for people."""
        if not self.as_json:
            _write(self._data, printable(text))

    def say(self, text: str) -> None:
        """Talk beside the answer."""
        if not self.as_json:
            _write(self._talk, printable(text))

    def redraw(self, text: str) -> None:
        """Replace the last line on a person's terminal; nothing elsewhere. An empty `text` clears it."""
        if self.is_live:
            self._talk.write(f"\r\x1b[2K{printable(text)}")
            self._talk.flush()

    def fault(self, fault: IoaError) -> None:
        self.error(fault.code, str(fault), fault.hint)

    def error(self, code: str, message: str, hint: str) -> None:
        if self.as_json:
            _write(self._data, json.dumps({"ok": False, "code": code, "message": message, "hint": hint}))
            return
        self.say(f"error: {message} [{code}]")
        if hint:
            self.say(f"hint:  {hint}")


def _write(stream: TextIO, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def printable(text: str) -> str:
    """Foreign text without control characters: it may not move a terminal's cursor."""
    return "".join(letter if letter in "\n\t" or letter.isprintable() else "\ufffd" for letter in text)


def one_line(text: str) -> str:
    """Foreign text that may not pass for lines of ours."""
    return text.replace("\n", " ").replace("\t", " ")


def columns(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Left-aligned columns under `heads`; "none" without rows."""
    if not rows:
        return "none"
    cells = [list(heads), *([one_line(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def pairs(table: Mapping[str, Any]) -> str:
    """One `key  value` a line, whatever the value says; keys of nested tables are joined by a dot, lists by a comma.

    Flags are told as yes and no; what is empty is left out.
    """
    flat = [(key, value) for key, value in _flat(table, "") if value]
    width = max((len(key) for key, _ in flat), default=0)
    return "\n".join(f"{key.ljust(width)}  {one_line(value)}" for key, value in flat)


def _flat(value: Any, key: str) -> list[tuple[str, str]]:
    match value:
        case dict():
            dot = f"{key}." if key else ""
            table = cast(dict[str, Any], value)
            return [pair for name, item in table.items() for pair in _flat(item, f"{dot}{name}")]
        case list():
            return [(key, ", ".join(str(item) for item in cast(list[Any], value)))]
        case bool():
            return [(key, "yes" if value else "no")]
        case _:
            return [(key, "" if value is None else str(value))]
