"""Real nodes through the command line alone: they meet, one works for whom it allows, one is killed."""

from collections.abc import Iterator

import pytest

from examples.mesh import ROOT, CommandError, Mesh, MeshNode, free_ports, ready, wait_until

HELLO = str(ROOT / "examples" / "hello" / "hello.toml")
WAIT_S = 60.0


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    with Mesh(tmp_path_factory.mktemp("mesh")) as mesh:
        (port,) = free_ports(1)
        mesh.make({"host": ["--set", f"dht.port={port}", "--agent", HELLO], "guest": [], "stranger": []})
        mesh.introduce(["host"])
        mesh.nodes["host"].write("allow", [mesh.nodes["guest"].id])
        for node in mesh.nodes.values():
            node.start()
        ready(mesh.nodes.values())
        yield mesh


@pytest.fixture(scope="module")
def host(mesh: Mesh) -> MeshNode:
    return mesh.nodes["host"]


@pytest.fixture(scope="module")
def guest(mesh: Mesh) -> MeshNode:
    return mesh.nodes["guest"]


def test_the_nodes_are_neighbours(host: MeshNode, guest: MeshNode) -> None:
    assert wait_until(lambda: host.id in {peer["node"] for peer in guest.ask("peers")["peers"]}, WAIT_S)
    assert guest.ask("id")["node"] == guest.id


def test_a_published_agent_is_found_by_word_and_by_skill(host: MeshNode, guest: MeshNode) -> None:
    (record,) = host.ask("publish", "hello")["records"]
    assert (record["agent"], record["skills"]) == ("hello", ["text.greet"])
    assert guest.ask("find", "hello")["hits"] == 1
    assert guest.ask("find", "--skill", "text.greet")["hits"] == 1
    assert guest.ask("find", "--skill", "text.shout")["hits"] == 0


def test_a_job_is_done_for_whoever_is_allowed(host: MeshNode, guest: MeshNode) -> None:
    result = guest.ask("ask", "Say hello to Ada", "--timeout", "60")
    assert result["outcome"] == "concluded"
    assert [(credit["agent"], credit["node"]) for credit in result["credits"]] == [("hello", host.id)]
    (team,) = guest.ask("team", "list")["teams"]
    assert (team["team"], team["phase"]) == (result["team"], "CONCLUSION")
    (task,) = guest.ask("task", "list")["tasks"]
    assert (task["skill"], task["state"]) == ("text.greet", "succeeded")
    assert guest.ask("ask", "--resume")["answer"] == result["answer"]
    assert guest.ask("status")["counters"]["signatures_checked"] > 0


def test_nobody_else_gets_a_job_done(host: MeshNode, mesh: Mesh) -> None:
    stranger = mesh.nodes["stranger"]
    assert stranger.ask("find", "--skill", "text.greet")["hits"] == 1
    with pytest.raises(CommandError, match="Nobody"):
        stranger.ask("ask", "Say hello to Ada", "--timeout", "30")
    assert stranger.ask("task", "list")["tasks"] == []
    assert [team["goal"] for team in host.ask("team", "list")["teams"]] == ["Say hello to Ada"]


def test_a_goal_that_no_skill_leads_to_fails_with_a_reason(guest: MeshNode) -> None:
    with pytest.raises(CommandError, match="Nobody"):
        guest.ask("ask", "Translate a poem", "--timeout", "20")
    assert guest.ask("team", "list")["teams"][0]["outcome"] == "failed"


def test_a_second_process_in_the_same_folder_is_refused(host: MeshNode) -> None:
    with pytest.raises(CommandError, match=f"already runs as process {host.pid}"):
        host.ask("up")


def test_a_killed_node_comes_back_as_itself(mesh: Mesh, host: MeshNode, guest: MeshNode) -> None:
    host.kill()
    with pytest.raises(CommandError, match="no node 'host' runs here"):
        host.ask("status")
    host.start()
    (status,) = ready([host])
    assert status["node"] == host.id
    assert guest.ask("find", "--skill", "text.greet")["hits"] == 1
    assert host.ask("down")["stopped"] == "host"
