"""A coordinator dies by SIGKILL while its team works: how soon does another decide, and is anything lost or done twice?

    five real nodes ── ask ──> tasks run ── kill -9 the coordinator ──> survivors polled for the first decision of a
    new term ──> the dead node starts again ──> the team concludes ──> lines of the outside file counted

`./dev bench failover [--json] [--rounds 20] [--runs 3]`. Every writer appends one line under its task's key.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import _ledger
from bench._measure import percentile, say
from examples.mesh import ROOT, Mesh, MeshNode, free_ports, ready, wait_until
from ioa_p2p.cli import client
from ioa_p2p.errors import IoaError
from ioa_p2p.node.home import Home

WRITERS = 4
GOAL = "write lines into the ledger and count all of them"
POLL_S = 0.02
RUNNING_WAIT_S = 30.0
DECIDE_WAIT_S = 30.0
END_WAIT_S = 90.0


def main() -> None:
    options = read_options()
    runs = [one_run(options.rounds) for _ in range(options.runs)]
    figures = {
        "rounds": sum(run["rounds"] for run in runs),
        "tasks_in_flight_min": min(run["tasks_in_flight_min"] for run in runs),
        "new_commit_p50_s": statistics.median(run["new_commit_p50_s"] for run in runs),
        "new_commit_p95_s": statistics.median(run["new_commit_p95_s"] for run in runs),
        "lost_tasks": sum(run["lost_tasks"] for run in runs),
        "double_effects": sum(run["double_effects"] for run in runs),
        "runs": options.runs,
        "load_avg": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(figures) if options.json else "\n".join(f"{name:22} {value}" for name, value in figures.items()))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench failover")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=20, help="kills in one run")
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


def one_run(rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ioa-") as folder, Mesh(Path(folder), "failover") as mesh:
        ledger = Path(folder) / "ledger.txt"
        build(mesh, Path(folder), ledger)
        outcomes = [one_round(mesh, ledger, number) for number in range(rounds)]
    times = [outcome["new_commit_s"] for outcome in outcomes]
    return {
        "rounds": len(outcomes),
        "tasks_in_flight_min": min(outcome["in_flight"] for outcome in outcomes),
        "new_commit_p50_s": round(percentile(times, 0.5), 3),
        "new_commit_p95_s": round(percentile(times, 0.95), 3),
        "lost_tasks": sum(outcome["lost"] for outcome in outcomes),
        "double_effects": sum(outcome["double"] for outcome in outcomes),
    }


# -- the mesh


def build(mesh: Mesh, folder: Path, ledger: Path) -> None:
    """An asker, four writers, two of which also count; everybody may lead."""
    tables = {
        "writer": agent_file(folder, ledger, "ledger.write"),
        "counter": agent_file(folder, ledger, "ledger.count"),
    }
    ports = free_ports(2)
    names = ["asker", *(f"writer-{number}" for number in range(WRITERS))]
    mesh.make({name: arguments(name, tables, ports) for name in names})
    allow_each_other(mesh)
    mesh.introduce(names[:2])
    for node in mesh.nodes.values():
        node.start()
    ready(mesh.nodes.values())


def agent_file(folder: Path, ledger: Path, skill: str) -> Path:
    """The TOML table of an agent that offers one skill of `_ledger`."""
    name = skill.replace(".", "-")
    path = folder / f"{name}.toml"
    target = json.dumps(f"{ROOT / 'bench' / '_ledger.py'}:{skill.split('.')[1]}")
    path.write_text(
        f'[agents.{name}]\nadapter = "python"\ntarget = {target}\nenv = {{ LEDGER_FILE = {json.dumps(str(ledger))} }}\n'
    )
    return path


def arguments(name: str, tables: dict[str, Path], ports: list[int]) -> list[str]:
    agents = [] if name == "asker" else [tables["writer"]]
    agents += [tables["counter"]] if name in ("writer-0", "writer-1") else []
    fixed = {"asker": ports[0], "writer-0": ports[1]}
    port = ["--set", f"dht.port={fixed[name]}"] if name in fixed else []
    return [*(word for path in agents for word in ("--agent", str(path))), *port]


def allow_each_other(mesh: Mesh) -> None:
    everybody = [node.id for node in mesh.nodes.values()]
    for node in mesh.nodes.values():
        node.write("allow", everybody)


# -- one kill


def one_round(mesh: Mesh, ledger: Path, number: int) -> dict[str, Any]:
    ledger.unlink(missing_ok=True)
    asker = mesh.nodes["asker"]
    team = asker.ask("ask", GOAL, "--detach", "--timeout", f"{END_WAIT_S:.0f}")["team"]
    wait_until(lambda: len(running(asker, team)) >= WRITERS, RUNNING_WAIT_S)
    in_flight = len(running(asker, team))
    before = told(asker, team)
    leader = mesh.by_id(before["coordinator"])
    survivors = [node for node in mesh.running if node is not leader]
    killed = time.monotonic()
    leader.kill()
    new_commit_s = first_new_term(survivors, team, before["term"], killed)
    leader.start()
    ready([leader])
    ended = wait_until(lambda: told(asker, team).get("outcome", "") != "", END_WAIT_S)
    tasks = told(asker, team).get("tasks", [])
    written = _ledger.lines(ledger)
    lost = sum(task["state"] != "succeeded" for task in tasks) + max(0, WRITERS - len(set(written))) + (not ended)
    double = len(written) - len(set(written))
    for task in tasks:
        if task["state"] != "succeeded":
            say(f"  {task['skill']} at {task['agent']}: {task['state']} {task['note']}")
    say(f"round {number}: {leader.name} died, {in_flight} tasks ran, next decision after {new_commit_s:.2f} s, "
        f"lost {lost}, double {double}")  # fmt: skip
    return {"in_flight": in_flight, "new_commit_s": new_commit_s, "lost": lost, "double": double}


def told(node: MeshNode, team: str) -> dict[str, Any]:
    """What a node knows of a team; empty while it does not answer."""
    try:
        return client.ask(Home(node.name, node.home, node.home).socket, "team", {"team": team}, 5.0)
    except IoaError:
        return {}


def running(node: MeshNode, team: str) -> list[dict[str, Any]]:
    tasks = told(node, team).get("tasks", [])
    return [task for task in tasks if task["state"] == "running" and task["skill"] == "ledger.write"]


def first_new_term(survivors: list[MeshNode], team: str, term: int, killed: float) -> float:
    """Seconds from the kill to the first decision of a later term that any survivor shows; all polled at once."""

    def watch(node: MeshNode) -> float:
        while time.monotonic() - killed < DECIDE_WAIT_S:
            if told(node, team).get("decided_term", 0) > term:
                break
            time.sleep(POLL_S)
        return time.monotonic() - killed

    with ThreadPoolExecutor(len(survivors)) as pool:
        return min(pool.map(watch, survivors))


if __name__ == "__main__":
    main()
