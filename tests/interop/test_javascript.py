"""The client in JavaScript, written from docs/wire.md: the test vectors, a real mesh over UDP, and a liar."""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.mesh import free_ports
from ioa_p2p.crypto.box import NONCE_BYTES, Boxes
from ioa_p2p.net.ports import Endpoint
from ioa_p2p.net.udp import UdpDatagrams
from ioa_p2p.node.config import Config
from ioa_p2p.node.node import Node
from ioa_p2p.wire import codec, ids
from ioa_p2p.wire.dht import Contact, Datagram, FindPointers, Found, pack_contact
from tests.dht.frames import forged, sealed
from tests.node.mesh import HELLO, MESH, Mesh
from tests.wire.samples import ALICE, BOB, MALLORY, OTHER_NETWORK, pointer, record

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "examples" / "javascript"
VECTORS = ROOT / "tests" / "vectors"
WAIT_S = 120.0

pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")), reason="needs node and npm: apt-get install nodejs npm"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed from its lock into a folder of its own."""
    folder = tmp_path_factory.mktemp("javascript") / "client"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules"))
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / ".npm")]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    return folder


async def run(client: Path, *arguments: str) -> tuple[int | None, list[dict[str, Any]], str]:
    """Exit code, the JSON lines it printed, and what it said beside them."""
    process = await asyncio.create_subprocess_exec(
        "node", *arguments, cwd=client, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(WAIT_S):
        out, err = await process.communicate()
    return process.returncode, [json.loads(line) for line in out.decode().splitlines()], err.decode()


def test_it_reads_and_writes_the_vectors_byte_for_byte(client: Path) -> None:
    command = ["node", "vectors.mjs", str(VECTORS)]
    done = subprocess.run(command, cwd=client, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    counts = dict(line.split(": ") for line in done.stdout.splitlines())
    files = ("identifiers", "signed", "refused", "datagrams")
    assert counts == {name: str(len(json.loads((VECTORS / f"{name}.json").read_text()))) for name in files}


@pytest.mark.parametrize("name", ["identifiers", "signed", "refused", "datagrams"])
def test_a_vector_that_is_wrong_is_noticed(client: Path, tmp_path: Path, name: str) -> None:
    for file in VECTORS.glob("*.json"):
        shutil.copy(file, tmp_path)
    spoiled = (tmp_path / f"{name}.json").read_text().replace("test-mesh", "other-mesh")
    (tmp_path / f"{name}.json").write_text(spoiled.replace('"bad-signature"', '"good-signature"'))
    command = ["node", "vectors.mjs", str(tmp_path)]
    assert subprocess.run(command, cwd=client, capture_output=True, timeout=WAIT_S).returncode == 1


# -- against real nodes


class UdpMesh(Mesh):
    """Real sockets on loopback for the DHT; links stay in memory."""

    def make(self, name: str, **options: Any) -> Config:
        (port,) = free_ports(1)
        config = self._configs[name] = replace(super().make(name, **options), dht_host="127.0.0.1", dht_port=port)
        return config

    def _datagrams(self, config: Config) -> Any:
        return UdpDatagrams(config.dht_host, config.dht_port)


async def published(node: Node) -> None:
    """Until all its agents stand in the DHT."""
    async with asyncio.timeout(WAIT_S):
        told = node.publishing.told
        while not told or not all(getattr(event, "confirmed", 0) for event in told.values()):
            node.publishing.news.clear()
            await node.publishing.news.wait()


async def test_it_finds_an_agent_in_a_mesh_of_nodes_and_its_signature_holds(client: Path, tmp_path: Path) -> None:
    async with UdpMesh(tmp_path) as mesh:
        mesh.make("first")
        for name in ("second", "third", "fourth"):
            mesh.make(name, seeds=("first",), agents=[(f"greeter-{name}", HELLO)])
        nodes = [await mesh.start(name) for name in ("first", "second", "third", "fourth")]
        await asyncio.gather(*(published(node) for node in nodes[1:]))
        code, found, _ = await run(client, "lookup.mjs", "--mesh", MESH, str(nodes[0].seed), "skill:text.greet")
        assert code == 0
        own = {one.agent: one for node in nodes for one in node.directory.held_records()}
        for one in found:
            true = own[one["agent"]]
            assert (one["node"], one["skills"]) == (ids.node_text(true.node), list(true.skills))
            assert (one["card"], one["addresses"]) == (true.card.hex(), list(true.addresses))
        assert sorted(one["agent"] for one in found) == ["greeter-fourth", "greeter-second", "greeter-third"]


async def test_in_another_mesh_it_says_that_the_seed_did_not_answer(client: Path, tmp_path: Path) -> None:
    async with UdpMesh(tmp_path) as mesh:
        mesh.make("first")
        first = await mesh.start("first")
        code, found, told = await run(client, "lookup.mjs", "--mesh", "other", str(first.seed), "word:hello")
        assert (code, found) == (1, [])
        assert "the seed did not answer: is it up, and of mesh other?" in told
        silent = await run(client, "lookup.mjs", "--mesh", MESH, str(first.seed), "word:hello")
        assert silent == (1, [], "0 agents under word:hello\n")


# -- against a liar


@asynccontextmanager
async def answering(pointers: Sequence[bytes], records: Sequence[bytes]) -> AsyncIterator[Contact]:
    """A node of Mallory's that answers every request with these frames, and names itself as the nearest."""
    boxes, datagrams = Boxes(MALLORY, ids.network_id("test-mesh")), UdpDatagrams("127.0.0.1", 0)

    def answer(batch: Sequence[tuple[Endpoint, bytes]]) -> None:
        for source, data in batch:
            sender, message = boxes.open(data)
            request = codec.decode(message, Datagram)
            frames = pointers if isinstance(request, FindPointers) else records
            contacts = (pack_contact(Contact(MALLORY.node, "127.0.0.1", datagrams.endpoint.port)),)
            found = Found(request.id, False, bytes(8), tuple(frames), contacts)
            datagrams.send(source, boxes.seal(sender, bytes(NONCE_BYTES), codec.encode(found)))

    await datagrams.open(answer)
    yield Contact(MALLORY.node, "127.0.0.1", datagrams.endpoint.port)
    await datagrams.aclose()


NOW_S = int(time.time())
BOBS = record(BOB, issued=NOW_S, seq=7)
KEY = "skill:stats.outliers"
TRUE_POINTER = sealed(pointer(BOB, issued=NOW_S, seq=5), BOB)


@pytest.mark.parametrize(
    ("pointers", "records", "agents"),
    [
        ([TRUE_POINTER], [sealed(BOBS, BOB)], ["analyst"]),
        ([TRUE_POINTER], [sealed(record(BOB, issued=NOW_S, seq=6), BOB), sealed(BOBS, BOB)], ["analyst"]),
        ([TRUE_POINTER], [forged(BOBS, BOB)], []),
        ([TRUE_POINTER], [sealed(BOBS, BOB, OTHER_NETWORK)], []),
        ([TRUE_POINTER], [sealed(record(BOB, issued=NOW_S - 10_000, seq=7), BOB)], []),
        ([TRUE_POINTER], [sealed(record(BOB, issued=NOW_S + 10_000, seq=7), BOB)], []),
        ([TRUE_POINTER], [sealed(record(BOB, issued=NOW_S, seq=4), BOB)], []),
        ([TRUE_POINTER], [sealed(record(BOB, issued=NOW_S, seq=8, gone=True), BOB), sealed(BOBS, BOB)], []),
        ([TRUE_POINTER], [sealed(record(ALICE, issued=NOW_S, seq=7))], []),
        ([TRUE_POINTER], [sealed(record(BOB, agent="other", issued=NOW_S, seq=7), BOB)], []),
        ([TRUE_POINTER], [b"", b"garbage", TRUE_POINTER, sealed(BOBS, BOB)[:-1]], []),
        ([forged(pointer(BOB, issued=NOW_S), BOB)], [sealed(BOBS, BOB)], []),
        ([sealed(pointer(BOB, issued=NOW_S, index=ids.index_key("word:x")), BOB)], [sealed(BOBS, BOB)], []),
    ],
    ids=[
        "the truth", "the newer of two", "forged", "of another mesh", "expired", "not yet valid",
        "older than its pointer",
        "gone", "another node's", "another agent's", "garbage", "a forged pointer", "a pointer of another key",
    ],
)  # fmt: skip
async def test_a_liar_makes_it_believe_nothing(
    client: Path, pointers: list[bytes], records: list[bytes], agents: list[str]
) -> None:
    async with answering(pointers, records) as liar:
        code, found, said = await run(client, "lookup.mjs", "--mesh", "test-mesh", str(liar), KEY)
    assert ([one["agent"] for one in found], code) == (agents, 0 if agents else 1), said
    assert [one["seq"] for one in found] == [7] * len(agents)
