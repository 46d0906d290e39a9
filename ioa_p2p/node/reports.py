"""The answer's files on disk: one folder a team, names made harmless, written whole or not at all."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ioa_p2p.adapters.base import Attachment
from ioa_p2p.node.control import plain

OUTPUTS = "outputs.json"
_HARMFUL = re.compile(r"[^A-Za-z0-9._-]+")


def write(folder: Path, files: Sequence[Attachment], outputs: Any) -> list[dict[str, Any]]:
    """Write everything; the list of `name, path, bytes`. Names are a peer's text: no path leaves `folder`, and two
    files of one name are two files. outputs: any decoded value of a peer's.

    Raises OSError when the disk refuses.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    named: dict[str, bytes] = {}
    for number, file in enumerate(files):
        name = safe_name(file.name, number)
        while name in named:
            name = f"_{name}"
        named[name] = file.data
    if outputs:
        named[OUTPUTS] = json.dumps(plain(outputs), indent=1, ensure_ascii=False).encode()
    for name, data in named.items():
        _write_whole(folder / name, data)
    return [{"name": name, "path": str(folder / name), "bytes": len(data)} for name, data in named.items()]


def safe_name(name: str, number: int) -> str:
    """A file name of letters, digits, '.', '_' and '-', no path, not hidden, not empty."""
    cleaned = _HARMFUL.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")[:100]
    return cleaned if cleaned and cleaned != OUTPUTS else f"file-{number}"


def _write_whole(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}")  # no file of a peer's begins with a dot
    partial.write_bytes(data)
    os.replace(partial, path)
