"""Real node processes, killed and frozen in the middle of a job: it ends, once, whoever is gone.

    birch, rowan   two seeds that know each other         home   asks, may lead
    miller         the one that can mill, may not lead    baker  the one that can bake, may lead

One mesh for all, in the order below; from the last but one on without its seeds.
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from examples.asking import Asking
from examples.mesh import Mesh, MeshNode, free_ports, ready, wait_until
from ioa_p2p.storage.sqlite import SqliteStorage
from ioa_p2p.team.decisions import open_entry
from ioa_p2p.wire.decision import Entry
from ioa_p2p.wire.ids import network_id, node_text
from ioa_p2p.wire.step import Assign, Reassign, decode_step
from tests.live import bakery

WAIT_S = 60.0
MESH = "bread"
WRITTEN_BYTES = 1024 * 1024  # of a loaf eight times as large: then the baker is killed


class Street:
    """The mesh, and what its customers see from outside."""

    def __init__(self, mesh: Mesh, folder: Path) -> None:
        self.mesh = mesh
        self.folder = folder
        self.birch, self.rowan, self.miller, self.baker, self.home = mesh.nodes.values()

    def order(self, name: str) -> str:
        """Ask for bread; the team's id once it stands."""
        return self.home.ask("ask", f"Bake bread of flour for {name}", "--detach", "--timeout", "100")["team"]

    def runs(self, name: str, skill: str) -> list[tuple[str, str]]:
        """Key and attempt of each run for a customer."""
        file = self.folder / "runs"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(key, attempt) for who, what, key, attempt in lines if (who, what) == (name, skill)]

    def milled(self, name: str) -> int:
        return len(list(self.folder.glob(f"milled-{name}-*")))

    def mills(self, name: str, times: int = 1) -> None:
        assert wait_until(lambda: len(self.runs(name, "grain.mill")) == times, WAIT_S), self.runs(name, "grain.mill")

    def open(self, name: str) -> None:
        (self.folder / f"open-{name}").touch()

    def get(self, team: str, name: str) -> dict[str, Any]:
        """The answer of a team ("": of the newest), which must be the whole loaf."""
        result = self.home.ask("ask", "--resume", *([team] if team else []))
        assert (result["outcome"], result["why"], result["answer"]) == (
            "concluded",
            "done",
            f"A loaf of flour for {name}.",
        )
        files = {file["name"]: Path(file["path"]) for file in result["files"]}
        assert files["loaf"].read_bytes() == bakery.loaf(name)
        return result


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("street")
    of: dict[str, list[str]] = {
        "birch": [],
        "rowan": [],
        "miller": ["--agent", table(folder, "mill"), "--set", "may_coordinate=false"],
        "baker": ["--agent", table(folder, "bake")],
        "home": [],
    }
    with Mesh(folder, MESH) as mesh:
        mesh.make(
            {name: ["--set", f"dht.port={port}", *of[name]] for name, port in zip(of, free_ports(len(of)), strict=True)}
        )
        mesh.introduce(["birch", "rowan"])
        street = Street(mesh, folder)
        street.miller.write("allow", [street.home.id])
        street.baker.write("allow", [street.home.id])
        street.home.write("allow", [street.baker.id])
        for node in mesh.nodes.values():
            node.start()
        ready(mesh.nodes.values())
        yield street


def table(folder: Path, skill: str) -> str:
    """An agents file that offers one function of the bakery."""
    file = folder / f"{skill}.toml"
    target = json.dumps(f"{bakery.__file__}:{skill}")
    file.write_text(
        f'[agents.{skill}]\nadapter = "python"\ntarget = {target}\nenv = {{ BAKERY = {json.dumps(str(folder))} }}\n'
    )
    return str(file)


def rows(node: MeshNode, space: str, copy: Path) -> list[tuple[bytes, bytes]]:
    """What a running node has on disk, from a copy of its files."""
    copy.mkdir(exist_ok=True)
    for file in node.home.glob("node.db*"):
        shutil.copy(file, copy)
    storage = SqliteStorage(copy / "node.db")
    try:
        return list(storage.scan(space))
    finally:
        storage.close()


def remembered(node: MeshNode, copy: Path) -> set[str]:
    return {node_text(key) for key, _ in rows(node, "dht/peers", copy)}


def links_between(one: MeshNode, other: MeshNode) -> int:
    """Established TCP connections, as the system sees them."""

    def ends(node: MeshNode) -> set[tuple[Any, Any]]:
        connections = psutil.Process(node.pid).net_connections("tcp")
        return {(each.laddr, each.raddr) for each in connections if each.status == psutil.CONN_ESTABLISHED}

    return len(ends(one) & {(theirs, ours) for ours, theirs in ends(other)})


def test_two_nodes_that_dial_each_other_end_with_one_link(street: Street) -> None:
    birch, rowan = street.birch, street.rowan
    assert wait_until(lambda: links_between(birch, rowan) == 1, WAIT_S)
    for one, other in ((birch, rowan), (rowan, birch)):
        assert [peer["node"] for peer in one.ask("peers")["peers"]].count(other.id) == 1
    assert links_between(birch, rowan) == 1


def test_a_frozen_coordinator_is_replaced_and_what_it_says_afterwards_counts_for_nothing(
    street: Street, tmp_path: Path
) -> None:
    team = street.order("ben")
    street.mills("ben")
    old = street.mesh.by_id(street.miller.ask("team", "show", team)["coordinator"])
    new = street.home if old is street.baker else street.baker
    os.kill(old.pid, signal.SIGSTOP)
    try:
        assert wait_until(lambda: new.ask("team", "show", team)["coordinator"] == new.id, WAIT_S)
    finally:
        os.kill(old.pid, signal.SIGCONT)
    assert wait_until(lambda: old.ask("team", "show", team)["coordinator"] == new.id, WAIT_S)
    street.open("ben")
    street.get(team, "ben")
    assert street.milled("ben") == 1
    log = decided(street.miller, team, tmp_path)
    leaders = {entry.term: node_text(entry.node) for entry in log if entry.term}
    assert list(leaders.values())[:2] == [old.id, new.id]
    assert [entry.term for entry in log] == sorted(entry.term for entry in log)
    assert all(node_text(entry.node) == leaders[entry.term] for entry in log if entry.term)
    given = {task for entry in log for task in tasks_given(entry)}
    taken = {key for key, _ in rows(street.miller, f"task/{team}", tmp_path) if key != b"fence"}
    assert taken, "the miller's journal is empty"
    assert taken <= given


def decided(node: MeshNode, team: str, copy: Path) -> list[Entry]:
    return [open_entry(frame, network_id(MESH)) for _, frame in rows(node, f"decision/{team}", copy)]


def tasks_given(entry: Entry) -> list[bytes]:
    match decode_step(entry.step) if entry.step else None:
        case Assign(tasks=tasks):
            return [task.id for task in tasks]
        case Reassign(task=task):
            return [task]
        case _:
            return []


def test_a_client_killed_between_question_and_answer_leaves_one_job_that_it_may_ask_for_again(street: Street) -> None:
    """Public failure 15."""
    before = {each["team"] for each in street.home.ask("team", "list")["teams"]}
    client = Asking(street.home, "Bake bread of flour for gil")
    street.mills("gil")
    client.end()
    street.open("gil")
    (team,) = {each["team"] for each in street.home.ask("team", "list")["teams"]} - before
    street.get(team, "gil")
    street.get("", "gil")
    assert {each["team"] for each in street.home.ask("team", "list")["teams"]} - before == {team}
    assert (street.milled("gil"), len(street.runs("gil", "grain.mill"))) == (1, 1)


def test_an_asker_killed_before_the_end_still_tells_everything(street: Street) -> None:
    team = street.order("cem")
    street.mills("cem")
    street.home.kill()
    street.open("cem")
    street.home.start()
    ready([street.home])
    asking = Asking(street.home, "--resume", team)
    told: list[dict[str, Any]] = []
    try:
        result = asking.follow(told.append, lambda: None)
    finally:
        asking.end()
    assert result["outcome"] == "concluded"
    assert {event["kind"] for event in told} >= {"roster", "elected", "phase", "said", "task", "concluded"}
    assert {event["skill"] for event in told if event["kind"] == "task" and event["state"] == "succeeded"} == {
        "grain.mill",
        "bread.bake",
    }
    assert street.get(team, "cem")["answer"] == result["answer"]
    assert street.milled("cem") == 1


def test_a_node_killed_in_the_middle_of_its_writes_starts_again_with_all_its_teams(street: Street) -> None:
    team = street.order("dana")
    street.mills("dana")
    before = {each["team"] for each in street.baker.ask("team", "list")["teams"]}
    street.open("dana")
    kill_while_it_writes(street.baker)
    street.baker.start()
    ready([street.baker])
    assert {each["team"] for each in street.baker.ask("team", "list")["teams"]} == before
    street.get(team, "dana")
    assert street.baker.ask("status")["degraded"] == ""


def kill_while_it_writes(node: MeshNode) -> None:
    process = psutil.Process(node.pid)
    start, end = process.io_counters().write_chars, time.monotonic() + WAIT_S
    while process.io_counters().write_chars < start + WRITTEN_BYTES:
        assert time.monotonic() < end, "it never wrote"
    node.kill()


def test_without_any_seed_the_others_go_on_and_a_restarted_node_finds_them_again(
    street: Street, tmp_path: Path
) -> None:
    others = {street.home.id, street.baker.id}
    assert wait_until(lambda: others <= remembered(street.miller, tmp_path), WAIT_S)
    street.birch.kill()
    street.rowan.kill()
    street.open("eve")
    street.get(street.order("eve"), "eve")
    street.miller.kill()
    street.miller.start()
    ready([street.miller])
    assert wait_until(lambda: {peer["node"] for peer in street.miller.ask("peers")["peers"]} == others, WAIT_S)
    street.open("fay")
    street.get(street.order("fay"), "fay")


def test_a_task_whose_worker_is_killed_and_comes_back_ends_once(street: Street) -> None:
    team = street.order("ada")
    street.mills("ada")
    street.miller.kill()
    street.miller.start()
    street.mills("ada", times=2)
    street.open("ada")
    result = street.get(team, "ada")
    assert street.milled("ada") == 1
    assert len(set(street.runs("ada", "grain.mill"))) == 1, "another attempt, or another key"
    assert {(each["agent"], each["state"], each["tasks"]) for each in result["credits"]} == {
        ("mill", "succeeded", 1),
        ("bake", "succeeded", 1),
    }
