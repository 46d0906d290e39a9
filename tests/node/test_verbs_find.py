"""publish, find and show over whole nodes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.node import verbs
from ioa_p2p.node.node import Node
from ioa_p2p.wire.ids import node_text
from tests.node.hashed import Hashed
from tests.node.mesh import HELLO, Mesh

WAIT_S = 60.0


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    """An asker and two greeters, all with a model."""
    async with Mesh(tmp_path, Hashed) as made:
        made.make("asker")
        for name in ("left", "right"):
            made.make(name, seeds=("asker",), agents=[("hello", HELLO)])
        made.allow("asker", "right")
        await asyncio.gather(*map(made.start, ("asker", "left", "right")))
        async with asyncio.timeout(WAIT_S):
            for name in ("left", "right"):
                publishing = made.nodes[name].publishing
                while not publishing.is_meant("hello") or "hello" not in publishing.told:
                    await asyncio.sleep(0.05)
        yield made


async def say(node: Node, verb: str, **args: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(WAIT_S):
        return await verbs.handlers(node)[verb](args, events.append), events


async def test_agents_are_found_by_meaning_the_allow_listed_first_and_shown_with_their_proof(mesh: Mesh) -> None:
    asker, right = mesh.nodes["asker"], node_text(mesh.key("right").node)
    async with asyncio.timeout(WAIT_S):
        while True:
            found, events = await say(asker, "find", words="hello greet", timeout_s=10)
            if found["hits"] == 2 and all(hit["answered"] for hit in found["ranked"]):
                break
    assert found["ranking"] == "meaning"
    assert [hit["trust"] for hit in found["ranked"]] == ["granted", "stranger"]
    assert found["ranked"][0]["node"] == right
    assert {event["kind"] for event in events} == {"hit"}
    assert found["rpcs"] > 0
    assert all(hit["description"] or hit["skills"] for hit in found["ranked"])
    nobody, told = await say(asker, "find", words="seismograms", timeout_s=10)
    assert (nobody["hits"], told) == (0, []), "who does not fit is not told of as found"
    assert all(hit["weak"] for hit in nobody["ranked"])
    part, told = await say(asker, "find", skill="GREET", limit=1, timeout_s=10)
    assert (part["hits"], part["ranking"]) == (1, "trust")
    assert len({event["node"] for event in told}) == 1, "the limit holds for all that is told"
    shown, _ = await say(asker, "show", agent=f"hello@{right[:8]}")
    assert (shown["node"], shown["signature"], shown["card"]) == (right, "good", "matches")
    assert shown["index_model"] == Hashed.model
    assert 1 <= shown["copies"] <= shown["holders"]
    assert [skill["name"] for skill in shown["skills"]] == ["text.greet"]
    with pytest.raises(UsageError) as two:
        await say(asker, "show", agent="hello")
    assert two.value.code == "ambiguous"
    with pytest.raises(UsageError) as none:
        await say(asker, "show", agent="nobody")
    assert none.value.code == "no-such-agent"
    with pytest.raises(UsageError) as bad:
        await say(asker, "show", agent="No Such!")
    assert bad.value.code == "bad-agent"


async def test_publish_says_how_many_holders_confirmed_and_that_it_is_found_by_meaning(mesh: Mesh) -> None:
    told, _ = await say(mesh.nodes["left"], "publish")
    (record,) = told["records"]
    assert record["meaning"]
    assert 1 <= record["copies"] <= record["holders"]
    assert record["keys"] > 3
    assert (record["cut"], record["warnings"]) == ([], [])
