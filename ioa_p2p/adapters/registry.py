"""Which adapters there are: the entry-point group `ioa_p2p.adapters`, for ours and for strangers'.

    [agents.NAME] adapter = "python" ──> find ──> import, only now ──> Adapter(NAME, options) ──> describe ──> Card

One agent that cannot come up is named in `failures`, and the node goes on with the others.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ioa_p2p.adapters.base import Adapter
from ioa_p2p.errors import AdapterError, IoaError, UsageError
from ioa_p2p.wire.records import Card

Make = Callable[[str, Mapping[str, Any]], Adapter]
"""An adapter class: agent name, options."""

GROUP = "ioa_p2p.adapters"
BUILT_IN = {  # as in pyproject.toml, so that a source tree works before it is installed
    "python": "ioa_p2p.adapters.python:PythonAdapter",
    "process": "ioa_p2p.adapters.process:ProcessAdapter",
    "openai": "ioa_p2p.adapters.openai:OpenAIAdapter",
    "team": "ioa_p2p.adapters.team:TeamAdapter",
}


@dataclass(frozen=True, slots=True)
class Agents:
    """What came up, by agent name; and what did not, with its reason."""

    adapters: dict[str, Adapter] = field(default_factory=dict[str, Adapter])
    concurrency: dict[str, int] = field(default_factory=dict[str, int])
    cards: dict[str, Card] = field(default_factory=dict[str, Card])
    failures: dict[str, IoaError] = field(default_factory=dict[str, IoaError])


async def start_all(tables: Mapping[str, Mapping[str, Any]]) -> Agents:
    """Make and describe the agents of a config, all at once. `tables`: agent name -> its TOML table."""
    agents = Agents()
    await asyncio.gather(*(_start(agents, name, table) for name, table in tables.items()))
    return agents


def make(agent: str, table: Mapping[str, Any]) -> Adapter:
    """The adapter of one agent, not yet started. Raises UsageError or AdapterError, each with a hint."""
    options = {key: value for key, value in table.items() if key != "adapter"}
    kind = table.get("adapter")
    if not isinstance(kind, str):
        raise UsageError("no-adapter", f"agents.{agent} names no adapter", f"adapter = one of: {', '.join(names())}")
    return load(kind)(agent, options)


def names() -> list[str]:
    """All adapters that can be named, sorted."""
    return sorted(_entry_points())


def load(name: str) -> Make:
    """Raises UsageError('unknown-adapter'), AdapterError('missing-library' | 'broken-adapter')."""
    entry = _entry_points().get(name)
    if entry is None:
        raise UsageError("unknown-adapter", f"no adapter named {name!r}", f"adapter = one of: {', '.join(names())}")
    try:
        return entry.load()
    except ModuleNotFoundError as fault:
        hint = f"pip install 'ioa-p2p[{name}]'" if name in BUILT_IN else f"install {fault.name}"
        raise AdapterError("missing-library", f"the adapter {name} needs {fault.name}", hint) from fault
    except Exception as fault:  # a stranger's module: whatever it raises, the node goes on
        raise AdapterError("broken-adapter", f"{name}: {type(fault).__name__}: {fault}", entry.value) from fault


def _entry_points() -> dict[str, EntryPoint]:
    """What is installed; the built-in names are ours, whoever else claims them."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    return found | {name: EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}


async def _start(agents: Agents, name: str, table: Mapping[str, Any]) -> None:
    try:
        adapter = make(name, table)
        try:
            agents.cards[name] = await adapter.describe()
        except BaseException:
            await adapter.aclose()
            raise
        agents.adapters[name] = adapter
        agents.concurrency[name] = int(table.get("concurrency", 1))
    except IoaError as fault:
        agents.failures[name] = fault
    except Exception as fault:
        agents.failures[name] = AdapterError("broken-adapter", f"{name}: {type(fault).__name__}: {fault}")
