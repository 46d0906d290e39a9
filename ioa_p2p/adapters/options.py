"""The TOML table of an agent, read strictly: an unknown key is an error that names the known ones.

[agents.thermometer]
adapter = "python"            # which adapter; all other keys are that adapter's options
target = "thermometer.py"
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from ioa_p2p.errors import AdapterError, PeerError, UsageError
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.records import Card, Skill

T = TypeVar("T", bound="AgentOptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What every agent may set. concurrency: runs at a time. description, version, skills: the card, or what
    overrides the agent's own."""

    concurrency: int = 1
    description: str = ""
    version: str = ""
    skills: tuple[Skill, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= limits.ADAPTER_CONCURRENCY_MAX:
            raise ValueError(f"concurrency is 1 to {limits.ADAPTER_CONCURRENCY_MAX}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions(AgentOptions):
    """What every agent in a process of its own may set; each run has one.

    folder: where the process works (default: the node's own). env: variables added to the node's environment.
    start_s: time to come up. cancel_s: grace before TERM, and again before KILL.
    """

    folder: str = "."
    env: dict[str, str] = field(default_factory=dict[str, str])
    start_s: float = 30.0
    cancel_s: float = 2.0

    def __post_init__(self) -> None:
        AgentOptions.__post_init__(self)
        if self.start_s <= 0 or not 0 <= self.cancel_s <= limits.ADAPTER_CANCEL_S_MAX:
            raise ValueError(f"start_s is above 0, cancel_s is 0 to {limits.ADAPTER_CANCEL_S_MAX:g}")

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.env}

    @property
    def working_folder(self) -> Path:
        return Path(self.folder).expanduser().absolute()


def read(kind: type[T], agent: str, table: Mapping[str, Any]) -> T:
    """Raises UsageError('unknown-option' | 'bad-option') with a hint."""
    known = ", ".join(sorted(each.name for each in fields(kind)))
    for name in table:
        if name not in known.split(", "):
            raise UsageError("unknown-option", f"agents.{agent}: unknown option {name!r}", f"known: {known}")
    try:
        return codec.decode(codec.encode(dict(table)), kind)
    except (PeerError, TypeError) as fault:
        raise UsageError("bad-option", f"agents.{agent}: {fault}", f"options: {known}") from None


def card(agent: str, options: AgentOptions, told: Mapping[str, Any]) -> Card:
    """What the agent told of itself, overridden by its options. Raises AdapterError('bad-card' | 'no-skills')."""
    try:
        own = codec.decode(codec.encode({"description": "", "version": "1", "skills": [], **told, "name": agent}), Card)
        made = Card(
            agent, options.description or own.description, options.version or own.version, options.skills or own.skills
        )
        size = len(codec.encode(made))
    except PeerError as fault:
        raise AdapterError("bad-card", f"{agent}: {fault}", "see the skills of this agent") from None
    if size > limits.CARD_BYTES_MAX:
        raise AdapterError(
            "bad-card", f"{agent}: a card of {size} bytes", f"at most {limits.CARD_BYTES_MAX}; shorten it"
        )
    if not made.skills:
        raise AdapterError(
            "no-skills", f"{agent} has no skill", "decorate a function with @skill, or name skills in its table"
        )
    return made


def plain(skill: Skill) -> dict[str, Any]:
    """A skill as JSON-like values."""
    return {name: getattr(skill, name) for name in skill.__struct_fields__}
