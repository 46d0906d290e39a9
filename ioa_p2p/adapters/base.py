"""The contract of an adapter: how one foreign agent joins a node.

    node.worker ── Task ──> adapter.run(task) ── Event, Event, ..., Result | Failed ──> node.worker

`describe()` gives the card; `run` streams events and ends with exactly one Result or Failed; closing the
iterator cancels (TERM, then KILL of the whole process group). What comes out is untrusted: bounded, typed,
decoded. Built-ins and strangers come through the same entry-point group, `ioa_p2p.adapters`.
"""

import shutil
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ioa_p2p.wire.records import Card
from ioa_p2p.wire.spending import NOTHING, UNLIMITED, Allowance, Spent


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that travels with a task or result. content: its bytes, or the path of a file that holds them.

    A path of a task or result is good until the run's end; `data` reads all of it, up to 64 MiB.
    """

    name: str
    media_type: str
    content: bytes | Path

    @property
    def data(self) -> bytes:
        """Raises OSError when the file is gone."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()

    @property
    def size(self) -> int:
        """In bytes. Raises OSError likewise."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def write(self, path: Path) -> None:
        """Put the contents into a new file: a link to the one that holds them where that is possible, else a copy.
        Raises OSError."""
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
            return
        try:
            path.hardlink_to(self.content)
        except OSError:  # another file system, or one without links
            shutil.copyfile(self.content, path)


@dataclass(frozen=True, slots=True)
class Task:
    """One call of one skill. `inputs`: type name -> JSON-like value (one entry per input, in order).

    deadline_s: seconds from now the run may take at most.
    key: idempotency key (16 B), the same for every attempt.
    budget: what it may spend; a run that tells more is stopped.
    """

    id: bytes
    key: bytes
    attempt: int
    skill: str
    goal: str
    inputs: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    attachments: tuple[Attachment, ...] = ()
    deadline_s: float = 600.0
    budget: Allowance = UNLIMITED


@dataclass(frozen=True, slots=True)
class Progress:
    """fraction: 0..1, or None when unknown. spent: by this run so far."""

    fraction: float | None
    note: str = ""
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of partial output text."""

    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """`outputs`: output type name -> JSON-like value. Ends the run. spent: by it; nothing: as told last."""

    outputs: dict[str, Any]
    attachments: tuple[Attachment, ...] = ()
    summary: str = ""
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class Failed:
    """The agent could not do it. `code` is kebab-case; `retry` False: another try cannot help."""

    code: str
    message: str = ""
    retry: bool = True
    spent: Spent = NOTHING


Event = Progress | Delta | Result | Failed


class Adapter(Protocol):
    """Constructed as `Adapter(name, options)` with the agent's TOML table; cheap; no IO before `describe`."""

    async def describe(self) -> Card:
        """Start what must be started, return the card. Raises AdapterError with a hint."""
        ...

    def run(self, task: Task) -> AsyncGenerator[Event, None]:
        """Run one task. Concurrent runs are allowed up to the agent's `concurrency` option."""
        ...

    async def aclose(self) -> None:
        """End all runs and processes of this adapter. Idempotent."""
        ...
