"""Real nodes on a local network, none of which was told of another: they meet; one moves to another address and stays.

desk, lamp   at home: 10.3.0.2, 10.3.0.3        phone   at 10.3.0.10, has the agent; then at 10.3.0.20
"""

from collections.abc import Iterator

import pytest

from examples.hosts import Hosts
from examples.mesh import ROOT, Mesh, MeshNode, ready, wait_until
from tests.namespaces import needs_hosts

HELLO = str(ROOT / "examples" / "hello" / "hello.toml")
HOME = {"desk": "10.3.0.2", "lamp": "10.3.0.3", "phone": "10.3.0.10"}
MOVED = "10.3.0.20"
WAIT_S = 60.0

pytestmark = needs_hosts


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as hosts:
        hosts.net("home", "10.3.0.0/24")
        for name, address in HOME.items():
            hosts.host(name, "home", address)
        yield hosts


@pytest.fixture(scope="module")
def mesh(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    everywhere = ["--host", "0.0.0.0"]
    with Mesh(tmp_path_factory.mktemp("roaming")) as mesh:
        mesh.make({"desk": everywhere, "lamp": everywhere, "phone": [*everywhere, "--agent", HELLO]})
        mesh.nodes["phone"].write("allow", [mesh.nodes["desk"].id])
        for node in mesh.nodes.values():
            node.place = hosts.inside(node.name)
            node.start()
        ready(mesh.nodes.values())
        yield mesh


def linked_at(node: MeshNode, other: MeshNode) -> str:
    """The address of the link that stands; empty for none."""
    return next((peer["address"] for peer in node.ask("peers")["peers"] if peer["node"] == other.id), "")


def greets(mesh: Mesh) -> bool:
    result = mesh.nodes["desk"].ask("ask", "Say hello to Ada", "--timeout", "60")
    return bool(result["outcome"] == "concluded" and result["credits"][0]["node"] == mesh.nodes["phone"].id)


def test_nodes_of_one_local_network_meet_without_a_seed_and_work_together(mesh: Mesh) -> None:
    desk, phone = mesh.nodes["desk"], mesh.nodes["phone"]
    assert wait_until(lambda: linked_at(desk, phone) != "", WAIT_S)
    assert {seed["source"] for seed in desk.ask("seeds", "list")["seeds"]} - {"remembered"} == {"lan"}
    assert greets(mesh)


def test_a_node_that_moved_is_linked_and_found_at_its_new_address_and_works_on(hosts: Hosts, mesh: Mesh) -> None:
    desk, phone = mesh.nodes["desk"], mesh.nodes["phone"]
    hosts.run("phone", "ip", "address", "del", f"{HOME['phone']}/24", "dev", "eth")
    hosts.run("phone", "ip", "address", "add", f"{MOVED}/24", "dev", "eth")
    assert wait_until(lambda: MOVED in linked_at(desk, phone) or MOVED in linked_at(phone, desk), WAIT_S)
    told = " ".join(phone.ask("status")["addresses"])
    assert MOVED in told
    assert f"/{HOME['phone']}/" not in told
    assert wait_until(lambda: known_at(desk, phone) == {MOVED}, WAIT_S), known_at(desk, phone)
    assert greets(mesh)


def known_at(node: MeshNode, other: MeshNode) -> set[str]:
    """Where the local network says that `other` is."""
    seeds = node.ask("seeds", "list")["seeds"]
    mine = [seed for seed in seeds if seed["source"] == "lan" and seed["seed"].startswith(other.id)]
    return {address.rpartition(":")[0] for seed in mine for address in seed["addresses"]}
