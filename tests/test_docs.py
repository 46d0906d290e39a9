"""Documents say what the code does: tables of the wire, headings, links, commands."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import ioa_p2p.wire
from ioa_p2p.cli import COMMANDS
from ioa_p2p.wire import codec
from ioa_p2p.wire.words import words
from tests.test_tidy import ROOT, tracked

WIRE = (ROOT / "docs/wire.md").read_text()
BASES = {"dht.Rpc"}  # never sent as such


def wire_types() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """("team.Report", its type) for every type of the package that MessagePack carries."""
    for module in pkgutil.iter_modules(ioa_p2p.wire.__path__):
        for name, kind in vars(importlib.import_module(f"ioa_p2p.wire.{module.name}")).items():
            own = inspect.isclass(kind) and kind.__module__ == f"ioa_p2p.wire.{module.name}"
            if own and issubclass(kind, msgspec.Struct) and kind is not codec.Message:
                yield f"{module.name}.{name}", kind


TYPES = {name: kind for name, kind in wire_types() if name not in BASES and kind.__struct_fields__ != ("raw",)}


def row(name: str, kind: type[msgspec.Struct]) -> str:
    """A type's row in docs/wire.md, of a table with a column for tags or without."""
    fields = ", ".join(kind.__struct_fields__)
    tag = kind.__struct_config__.tag
    tag_cell = rf"\| {tag} " if tag is not None else r"(\| )?"
    return rf"^\| `{re.escape(name)}` {tag_cell}\| {re.escape(fields)} ?\|$"


@pytest.mark.parametrize("name", TYPES)
def test_the_page_shows_every_wire_type_with_its_fields_in_order(name: str) -> None:
    assert re.search(row(name, TYPES[name]), WIRE, re.MULTILINE), row(name, TYPES[name])


def test_the_page_lists_the_words_that_are_no_keywords() -> None:
    (listed,) = re.findall(r"left out if it is one of\n\n```\n(.*?)```", WIRE, re.DOTALL)
    assert len(listed.split()) > 50
    assert words(listed) == []
    assert [
        word for word in re.findall(r"[a-z]+", WIRE.lower()) if not words(word) and word not in listed.split()
    ] == []


def test_the_page_shows_no_type_that_is_not_there() -> None:
    modules = "|".join({name.split(".")[0] for name in TYPES})
    assert set(re.findall(rf"`((?:{modules})\.[A-Z]\w+)`", WIRE)) <= set(TYPES)


def test_every_heading_that_code_names_is_there() -> None:
    headings = set(re.findall(r"^#+ (.+)$", WIRE, re.MULTILINE))
    named = {
        heading for file in tracked(".py") for heading in re.findall(r'docs/wire\.md, "([^"\[]+)"', file.read_text())
    }
    assert len(named) > 5
    assert named <= headings


def test_every_document_that_is_named_is_there() -> None:
    known = {file.name for file in tracked(".md")}
    named = {
        (str(file.relative_to(ROOT)), name)
        for file in tracked(".py", ".md", ".toml")
        for name in re.findall(r"\b[A-Z]{4,}\.md\b", file.read_text())
    }
    assert {(file, name) for file, name in named if name not in known} == set()


@pytest.mark.parametrize("page", tracked(".md"), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_checkout_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= {anchor(title) for title in re.findall(r"^#+ (.+)$", text, re.M)}


def anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", tracked(".md"), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_documents_exist(page: Path) -> None:
    named = set(re.findall(r"ioa-p2p (?:--\w+ \w+ )*([a-z]+)\b", "\n".join(code(page.read_text()))))
    assert named <= set(COMMANDS)


def code(text: str) -> Iterator[str]:
    """Code spans and blocks of a page."""
    yield from re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    yield from re.findall(r"`([^`\n]+)`", text)
