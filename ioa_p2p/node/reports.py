"""The answer's files on disk: one folder a team, names made harmless, written whole or not at all."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from ioa_p2p.node.control import plain

OUTPUTS = "outputs.json"
_HARMFUL = re.compile(r"[^A-Za-z0-9._-]+")


def place(folder: Path, name: str, taken: set[str]) -> Path:
    """Where to write a file: its name is a peer's text, so no path leaves `folder`, and two files of one name are two
    files. taken: names given so far; the new one is added. Raises OSError when the disk refuses.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    harmless = safe_name(name, len(taken))
    while harmless in taken:
        harmless = f"_{harmless}"
    taken.add(harmless)
    return folder / harmless


def row(path: Path) -> dict[str, Any]:
    """`name, path, bytes` of a file that is there."""
    return {"name": path.name, "path": str(path), "bytes": path.stat().st_size}


def write_outputs(folder: Path, outputs: Any) -> dict[str, Any]:
    """Any decoded value of a peer's, as JSON; its row. Raises OSError when the disk refuses."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = folder / f".{OUTPUTS}"  # no file of a peer's begins with a dot
    partial.write_bytes(json.dumps(plain(outputs), indent=1, ensure_ascii=False).encode())
    os.replace(partial, folder / OUTPUTS)
    return row(folder / OUTPUTS)


def together(results: Iterable[Any]) -> Any:
    """One object of the outputs of several results; a type that came before gets a number."""
    decoded = [each for each in results if each]
    if len(decoded) < 2:
        return decoded[0] if decoded else None
    merged: dict[str, Any] = {}
    for name, value in (item for outputs in decoded for item in _items(outputs)):
        merged[name if name not in merged else f"{name} {len(merged) + 1}"] = value
    return merged


def _items(outputs: Any) -> list[tuple[str, Any]]:
    if not isinstance(outputs, dict):
        return [("value", outputs)]
    return [(str(name), value) for name, value in cast(dict[Any, Any], outputs).items()]


def safe_name(name: str, number: int) -> str:
    """A file name of letters, digits, '.', '_' and '-', no path, not hidden, not empty."""
    cleaned = _HARMFUL.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")[:100]
    return cleaned if cleaned and cleaned != OUTPUTS else f"file-{number}"
