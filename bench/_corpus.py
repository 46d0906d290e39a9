"""Real descriptions as agents, and real questions about them: shared by benches.

    bench/data/metatool, livemcp ──> Corpus(entries, queries)      a Card an entry, names unique over all sources
    $IOA_P2P_DATA or ../shared/data: mcp_registry ──> 4,678 entries without queries, None when absent

Sources and licences: bench/data/README.md. Half of the queries is there to tune by, the other half is reported.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.records import Card, Skill

HERE = Path(__file__).parent
DATA = HERE / "data"
REGISTRY = "mcp_registry"
DESCRIPTION_CHARS_MAX = 2_000  # of a Card


@dataclass(frozen=True)
class Entry:
    """One agent. id: "source/id of the source"."""

    id: str
    card: Card

    @property
    def source(self) -> str:
        return self.id.partition("/")[0]


@dataclass(frozen=True)
class Query:
    """relevant: ids of the entries that answer it (together, when several)."""

    id: str
    text: str
    relevant: frozenset[str]

    @property
    def tunes(self) -> bool:
        """In the half that weights may be tuned on; by hash, so that no order of the file decides."""
        return blake(self.id.encode())[0] % 2 == 0


@dataclass(frozen=True)
class Corpus:
    entries: tuple[Entry, ...]
    queries: tuple[Query, ...] = ()


def metatool() -> Corpus:
    """199 tools, 2,000 queries with one answer each."""
    return _corpus("metatool", "queries.jsonl")


def two_tools() -> Corpus:
    """The same 199 tools, 254 queries that need two of them."""
    return _corpus("metatool", "queries_two_tools.jsonl")


def livemcp() -> Corpus:
    """70 servers, a skill a tool; 47 tasks, each with its set of servers."""
    return _corpus("livemcp", "queries.jsonl")


def chinese() -> tuple[Query, ...]:
    """Chinese queries for livemcp servers that are described in Chinese."""
    return _queries(DATA / "chinese", "livemcp.jsonl", "livemcp")


def chinese_for_english() -> tuple[Query, ...]:
    """Chinese queries for metatool tools, which are described in English."""
    return _queries(DATA / "chinese", "metatool.jsonl", "metatool")


def registry() -> Corpus | None:
    """4,678 real descriptions, no queries; None when the folder is not there: see `registry_hint`."""
    path = _registry_path()
    return Corpus(_entries(path, REGISTRY)) if path.exists() else None


def registry_hint() -> str:
    """What to tell who lacks the registry."""
    return f"no {_registry_path()}: name the folder that holds {REGISTRY}/corpus.jsonl by IOA_P2P_DATA"


def everything() -> Corpus:
    """All entries there are, names unique, with metatool's and livemcp's queries. 4,947 with the registry."""
    parts = [each for each in (metatool(), livemcp(), registry()) if each is not None]
    entries = unique_names([entry for part in parts for entry in part.entries])
    return Corpus(tuple(entries), tuple(query for part in parts for query in part.queries))


def unique_names(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The same entries; an agent name that came before gets a number."""
    seen: set[str] = set()
    for entry in entries:
        name, number = entry.card.name, 2
        while name in seen:
            name = f"{entry.card.name[: limits.AGENT_NAME_BYTES_MAX - 5].rstrip('-')}-{number}"
            number += 1
        seen.add(name)
        yield entry if name == entry.card.name else replace(entry, card=_renamed(entry.card, name))


def _renamed(card: Card, name: str) -> Card:
    return Card(name, card.description, card.version, card.skills)


@cache
def _corpus(source: str, queries: str) -> Corpus:
    folder = DATA / source
    return Corpus(_entries(folder / "corpus.jsonl", source), _queries(folder, queries, source))


def _entries(path: Path, source: str) -> tuple[Entry, ...]:
    return tuple(Entry(f"{source}/{row['id']}", card_of(row)) for row in _rows(path))


def _queries(folder: Path, file: str, source: str) -> tuple[Query, ...]:
    """Named by folder and file too: sources number their queries alike."""
    return tuple(
        Query(f"{folder.name}/{file}/{row['id']}", row["text"], frozenset(f"{source}/{each}" for each in row["rel"]))
        for row in _rows(folder / file)
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _registry_path() -> Path:
    folder = os.environ.get("IOA_P2P_DATA") or HERE.parent.parent / "shared" / "data"
    return Path(folder) / REGISTRY / "corpus.jsonl"


# -- an entry as its owner would describe it


def card_of(row: dict[str, Any]) -> Card:
    """row: id, name, text and maybe tools (name, description), each a skill."""
    name = slug(row["name"], limits.AGENT_NAME_BYTES_MAX)
    kept = slug(row["name"], 1_000) == name and row["name"].isascii()
    description = row["text"] if kept else f"{row['name']}. {row['text']}"
    skills = _skills(row.get("tools") or ()) or (Skill(slug(row["name"], limits.SKILL_NAME_BYTES_MAX, parts=6)),)
    return Card(name, description[:DESCRIPTION_CHARS_MAX], skills=skills)


def _skills(tools: Sequence[dict[str, Any]]) -> tuple[Skill, ...]:
    skills = {
        name: Skill(name, " ".join((tool["description"] or "").split()))
        for tool in tools[: limits.CARD_SKILLS_MAX]
        if (name := slug(tool["name"], limits.SKILL_NAME_BYTES_MAX, parts=6))
    }
    return tuple(skills.values())


def slug(name: str, size: int, parts: int = 1_000) -> str:
    """A canonical name: "HouseRentingTool" -> "house-renting-tool"; of letters beyond ASCII nothing is left."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    found = re.findall(r"[a-z0-9]+", spaced.lower())
    return "-".join(found[:parts])[:size].rstrip("-") or "agent"
