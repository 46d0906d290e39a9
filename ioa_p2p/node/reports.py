"""The answer's files on disk: one folder a team, names made harmless, written whole or not at all."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ioa_p2p.adapters.base import Attachment

OUTPUTS = "outputs.json"
_HARMFUL = re.compile(r"[^A-Za-z0-9._-]+")


def write(folder: Path, files: Sequence[Attachment], outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write everything; the list of `name, path, bytes`. Names are a peer's text: no path leaves `folder`.

    Raises OSError when the disk refuses.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    named = {safe_name(file.name, number): file.data for number, file in enumerate(files)}
    if outputs:
        named[OUTPUTS] = json.dumps(outputs, indent=1, default=repr, ensure_ascii=False).encode()
    for name, data in named.items():
        _write_whole(folder / name, data)
    return [{"name": name, "path": str(folder / name), "bytes": len(data)} for name, data in named.items()]


def safe_name(name: str, number: int) -> str:
    """A file name of letters, digits, '.', '_' and '-', no path, not hidden, not empty."""
    cleaned = _HARMFUL.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")[:100]
    return cleaned if cleaned and cleaned != OUTPUTS else f"file-{number}"


def _write_whole(path: Path, data: bytes) -> None:
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(data)
    os.replace(partial, path)
