"""Real nodes behind home routers: nobody reaches them unasked, and still they find each other and work together.

birch, rowan  ── outside, 11.0.0.0/24        ada   at home behind one router, asks
                                             bob   at home behind another, has the agent
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from examples.hosts import Hosts, HostsError
from examples.mesh import ROOT, Mesh, MeshNode, ready, wait_until
from tests.namespaces import needs_hosts

HELLO = str(ROOT / "examples" / "hello" / "hello.toml")
OUTSIDE = {"birch": "11.0.0.2", "rowan": "11.0.0.3"}
AT_HOME = {"ada": ("11.0.0.4", "10.1.0"), "bob": ("11.0.0.5", "10.2.0")}
UDP_S = 2  # a mapping lives so long and no longer: every burst of the DHT comes from another port (T21)
WAIT_S = 60.0

pytestmark = needs_hosts


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as hosts:
        hosts.net("outside", "11.0.0.0/24")
        for name, address in OUTSIDE.items():
            hosts.host(name, "outside", address)
        for name, (outer, inner) in AT_HOME.items():
            hosts.net(f"{name}-home", f"{inner}.0/24")
            hosts.router(f"{name}-door", "outside", outer, f"{name}-home", f"{inner}.1", UDP_S)
            hosts.host(name, f"{name}-home", f"{inner}.2", gateway=f"{inner}.1")
        yield hosts


@pytest.fixture(scope="module")
def mesh(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    with Mesh(tmp_path_factory.mktemp("nat")) as mesh:
        mesh.make(
            {name: _on(address) for name, address in OUTSIDE.items()}
            | {"ada": _on("0.0.0.0"), "bob": [*_on("0.0.0.0"), "--agent", HELLO]}
        )
        seeds = [mesh.nodes[name].ask("id")["seed"] for name in OUTSIDE]
        for node in mesh.nodes.values():
            node.write("seeds", [seed for seed in seeds if node.id not in seed])
        mesh.nodes["bob"].write("allow", [mesh.nodes["ada"].id])
        for node in mesh.nodes.values():
            node.place = hosts.inside(node.name)
            node.start()
        ready(mesh.nodes.values())
        yield mesh


def _on(address: str) -> list[str]:
    return ["--set", f"dht.host={address}", "--set", f"link.host={address}", "--set", "dht.port=4001"]


@pytest.fixture
def ada(mesh: Mesh) -> MeshNode:
    return mesh.nodes["ada"]


@pytest.fixture
def bob(mesh: Mesh) -> MeshNode:
    return mesh.nodes["bob"]


def relays(node: MeshNode) -> set[str]:
    return set(node.ask("status")["relays"])


def via(node: MeshNode, other: MeshNode) -> str | None:
    """Who carries the link to `other`; "" nobody, None no link."""
    return next((peer["via"] for peer in node.ask("peers")["peers"] if peer["node"] == other.id), None)


def test_the_routers_let_nobody_in(hosts: Hosts) -> None:
    knock = 'import socket; socket.create_connection(("11.0.0.5", 4001), 2)'
    with pytest.raises(HostsError, match=r"Connection|timed out"):
        hosts.run("ada", "python3", "-c", knock)


def test_nodes_at_home_are_clients_and_reached_through_two_relays(mesh: Mesh, ada: MeshNode, bob: MeshNode) -> None:
    outside = {mesh.nodes[name].id for name in OUTSIDE}
    for node in (ada, bob):
        assert wait_until(lambda node=node: relays(node) == outside, WAIT_S)
        assert not node.ask("status")["reachable"]
        (check,) = [check for check in node.ask("doctor")["checks"] if check["name"] == "reachable"]
        assert check["ok"]
        assert "through" in check["detail"]
    for name in OUTSIDE:
        status = mesh.nodes[name].ask("status")
        assert (status["reachable"], status["relays"]) == (True, [])


def test_they_find_each_other_by_the_dht_and_finish_a_task_over_a_relayed_link(
    mesh: Mesh, ada: MeshNode, bob: MeshNode
) -> None:
    assert wait_until(lambda: ada.ask("find", "--skill", "text.greet")["hits"] == 1, WAIT_S)
    result = ada.ask("ask", "Say hello to Ada", "--timeout", "60")
    assert result["outcome"] == "concluded"
    assert [(credit["agent"], credit["node"]) for credit in result["credits"]] == [("hello", bob.id)]
    assert via(ada, bob) in {mesh.nodes[name].id for name in OUTSIDE}
    assert via(bob, ada) == via(ada, bob)


def test_a_port_that_changes_with_every_silence_keeps_nothing_from_the_dht(bob: MeshNode, hosts: Hosts) -> None:
    """A holder's token is good for one key at one port."""
    before = _ports_while_publishing(bob, hosts)
    assert wait_until(lambda: not _ports_of_bob(hosts), WAIT_S)
    after = _ports_while_publishing(bob, hosts)
    assert before
    assert after
    assert before.isdisjoint(after)


def _ports_while_publishing(bob: MeshNode, hosts: Hosts) -> set[str]:
    """The ports that the world saw bob's datagrams come from, while all its holders took its record."""
    ports: set[str] = set()
    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(bob.ask, "publish", "hello")
        while not publishing.done():
            ports |= _ports_of_bob(hosts)
        (record,) = publishing.result()["records"]
    assert record["copies"] == len(OUTSIDE)
    return ports


def _ports_of_bob(hosts: Hosts) -> set[str]:
    """What its router keeps of UDP: "ipv4 2 udp 17 1 src=10.2.0.2 ... dst=11.0.0.5 sport=4001 dport=31337"."""
    kept = hosts.run("bob-door", "cat", "/proc/net/nf_conntrack")
    return {line.rsplit("dport=", 1)[1].split()[0] for line in kept.splitlines() if " udp " in line}


def test_when_the_relay_in_use_dies_they_work_on_through_the_other(mesh: Mesh, ada: MeshNode, bob: MeshNode) -> None:
    in_use = mesh.by_id(via(ada, bob) or "")
    other = next(mesh.nodes[name] for name in OUTSIDE if mesh.nodes[name] is not in_use)
    in_use.kill()
    assert wait_until(lambda: via(ada, bob) == other.id and relays(bob) == {other.id}, WAIT_S)
    assert ada.ask("ask", "Say hello to Ada", "--timeout", "60")["outcome"] == "concluded"
