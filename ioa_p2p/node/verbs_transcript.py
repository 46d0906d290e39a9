"""The verb of the control socket that writes a team's transcript. Arguments and answers: docs/control.md.

team-export ── a thread reads the disk, page by page ──> the file, by its path
"""

import asyncio
import time
from pathlib import Path
from typing import Any

from ioa_p2p.errors import UsageError
from ioa_p2p.node.arguments import flag, text
from ioa_p2p.node.control import Emit
from ioa_p2p.node.exporting import Source, export
from ioa_p2p.node.node import Node
from ioa_p2p.node.verbs_task import find_story
from ioa_p2p.wire import limits
from ioa_p2p.wire.transcript import MAGIC


async def _export(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    story, path = find_story(node, text(args, "team")), _path(text(args, "file"))
    source = Source(node.storage, node.key, node.network)
    done = await asyncio.to_thread(export, source, story.team, path, int(time.time()), with_blobs=flag(args, "blobs"))
    return {
        "team": story.team.hex(),
        "file": str(path),
        "entries": done.entries,
        "lines": done.lines,
        "files": done.blobs,
        "absent": done.absent,
        "bytes": done.bytes,
    }


HANDLERS = {"team-export": _export}


def _path(told: str) -> Path:
    """Raises UsageError('bad-argument' | 'file-exists')."""
    path = Path(told)
    if not path.is_absolute() or len(told) > limits.PATH_CHARS_MAX or "\0" in told:
        raise UsageError("bad-argument", "file must be an absolute path", "the node's own folder is not the asker's")
    if path.exists() and not _is_transcript(path):
        raise UsageError("file-exists", f"{path} is there already, and is no transcript", "give another with -o")
    return path


def _is_transcript(path: Path) -> bool:
    """Then it may be replaced."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
