"""A coordinator dies by SIGKILL while its team works: how soon does another decide, and is anything lost or done twice?

    five real nodes ── ask ──> tasks run ── the coordinator dies at one of its next saves, drawn by lot, before the
    disk has it or just after ──> survivors polled for the first decision of a new term ──> the dead node starts
    again ──> the team concludes ──> lines of the outside file counted

    and once a run: SIGSTOP for a minute instead ──> SIGCONT ──> what it decided or gave out as of old: nothing

`./dev bench failover [--json] [--rounds 15] [--pauses 1] [--runs 2] [--seed N]`. Every writer appends one line under
its task's key. The task of the one that stands still is its alone, so it may fail, but must be told as lost.
"""

import argparse
import json
import os
import random
import signal
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
SAVES_MAX = 12  # the coordinator dies at one of so many next saves
DIE_WAIT_S = 10.0  # it decides little at times: then it is killed between two saves
SEAMS = ROOT / "bench" / "_seams"
MORTAL = ("env", f"PYTHONPATH={SEAMS}{os.pathsep}{ROOT}")


def main() -> None:
    options = read_options()
    dice = random.Random(options.seed)
    runs = [one_run(options, dice) for _ in range(options.runs)]
    figures = {
        "rounds": sum(run["rounds"] for run in runs),
        "tasks_in_flight_min": min(run["tasks_in_flight_min"] for run in runs),
        "new_commit_p50_s": statistics.median(run["new_commit_p50_s"] for run in runs),
        "new_commit_p95_s": statistics.median(run["new_commit_p95_s"] for run in runs),
        "lost_tasks": sum(run["lost_tasks"] for run in runs),
        "double_effects": sum(run["double_effects"] for run in runs),
        "killed_at_a_save": sum(run["killed_at_a_save"] for run in runs),
        "pauses": sum(run["pauses"] for run in runs),
        "stale_accepted": sum(run["stale_accepted"] for run in runs),
        "runs": options.runs,
        "seed": options.seed,
        "load_avg": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(figures) if options.json else "\n".join(f"{name:22} {value}" for name, value in figures.items()))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench failover")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15, help="kills in one run")
    parser.add_argument("--pauses", type=int, default=1, help="SIGSTOPs in one run")
    parser.add_argument("--pause-s", type=float, default=60.0)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def one_run(options: argparse.Namespace, dice: random.Random) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ioa-") as folder, Mesh(Path(folder), "failover") as mesh:
        ledger = Path(folder) / "ledger.txt"
        build(mesh, Path(folder), ledger)
        outcomes = rounds(mesh, ledger, options.rounds, dice)
        pauses = [one_pause(mesh, ledger, options.pause_s) for _ in range(options.pauses)]
    times = [outcome["new_commit_s"] for outcome in outcomes if outcome["led"]]
    ends = [*outcomes, *pauses]
    return {
        "rounds": len(times),
        "tasks_in_flight_min": min(outcome["in_flight"] for outcome in outcomes),
        "new_commit_p50_s": round(percentile(times, 0.5), 3),
        "new_commit_p95_s": round(percentile(times, 0.95), 3),
        "lost_tasks": sum(outcome["lost"] for outcome in ends),
        "double_effects": sum(outcome["double"] for outcome in ends),
        "killed_at_a_save": sum(outcome["at_save"] for outcome in outcomes),
        "pauses": len(pauses),
        "stale_accepted": sum(outcome["stale"] for outcome in pauses),
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
        node.start(MORTAL)
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


# -- one kill, one pause


def rounds(mesh: Mesh, ledger: Path, count: int, dice: random.Random) -> list[dict[str, Any]]:
    """So many kills of a coordinator. Raises TimeoutError when too often another one leads by then."""
    outcomes: list[dict[str, Any]] = []
    while sum(outcome["led"] for outcome in outcomes) < count:
        if len(outcomes) == 2 * count:
            raise TimeoutError(f"fewer than {count} of {2 * count} kills hit a coordinator")
        outcomes.append(one_round(mesh, ledger, len(outcomes), dice))
    return outcomes


def one_round(mesh: Mesh, ledger: Path, number: int, dice: random.Random) -> dict[str, Any]:
    """led: whether the one that died still coordinated; if not, the time is of no use."""
    team, before, in_flight = begin(mesh, ledger)
    leader = mesh.by_id(before["coordinator"])
    survivors = [node for node in mesh.running if node is not leader]
    point = f"{dice.randint(1, SAVES_MAX)} {dice.choice(('before', 'after'))}"
    at_save, killed, last = die_at(leader, team, point)
    new_commit_s = first_new_term(survivors, team, last.get("term", before["term"]), killed)
    leader.start(MORTAL)
    ready([leader])
    back_s = time.monotonic() - killed
    led = last.get("coordinator", leader.id) == leader.id
    how = f"at save {point} the disk has it" if at_save else "between two saves"
    how += "" if led else ", but led no more"
    say(f"round {number}: {leader.name} died {how}, {in_flight} tasks ran, next decision after {new_commit_s:.2f} s, "
        f"back after {back_s:.0f} s")  # fmt: skip
    figures = {"led": led, "in_flight": in_flight, "new_commit_s": new_commit_s, "at_save": at_save}
    return {**figures, **finish(mesh, team, ledger)}


def one_pause(mesh: Mesh, ledger: Path, pause_s: float) -> dict[str, Any]:
    """The coordinator stands still until the others are done; what it knows in the end must be what they decided."""
    team, before, in_flight = begin(mesh, ledger)
    leader = mesh.by_id(before["coordinator"])
    others = [node for node in mesh.running if node is not leader]
    os.kill(leader.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    try:
        new_commit_s = first_new_term(others, team, before["term"], stopped)
        time.sleep(max(0.0, pause_s - (time.monotonic() - stopped)))
    finally:
        os.kill(leader.pid, signal.SIGCONT)
    end = finish(mesh, team, ledger, excused=leader.id)
    wait_until(lambda: len({decided(node, team) for node in mesh.running}) == 1, END_WAIT_S)
    stale = decided(leader, team) ^ decided(others[0], team)
    say(f"{leader.name} stood still for {pause_s:.0f} s, {in_flight} tasks ran, next decision after "
        f"{new_commit_s:.2f} s, {len(stale)} tasks differ")  # fmt: skip
    return {**end, "stale": len(stale)}


def begin(mesh: Mesh, ledger: Path) -> tuple[str, dict[str, Any], int]:
    """A team at work: its id, what the asker knows of it, how many tasks run."""
    ledger.unlink(missing_ok=True)
    asker = mesh.nodes["asker"]
    team = asker.ask("ask", GOAL, "--detach", "--timeout", f"{END_WAIT_S:.0f}")["team"]
    wait_until(lambda: len(running(asker, team)) >= WRITERS, RUNNING_WAIT_S)
    return team, told(asker, team), len(running(asker, team))


def die_at(node: MeshNode, team: str, point: str) -> tuple[bool, float, dict[str, Any]]:
    """Whether it died at a save, when (monotonic seconds), and the last that it told of the team."""
    order, last = node.home / "die", told(node, team)
    order.write_text(point)
    deadline = time.monotonic() + DIE_WAIT_S
    with ThreadPoolExecutor(1) as pool:
        died = pool.submit(until_dead, node)
        while not died.done() and time.monotonic() < deadline:
            last = told(node, team) or last
            time.sleep(POLL_S)
        at_save = died.done()
        if not at_save:
            order.unlink(missing_ok=True)
            node.kill()
        return at_save, died.result(), last


def until_dead(node: MeshNode) -> float:
    """Wait for its death; when that was."""
    assert node.process is not None
    node.process.wait()
    return time.monotonic()


def finish(mesh: Mesh, team: str, ledger: Path, excused: str = "") -> dict[str, int]:
    """Wait for the end; tasks that did not succeed or left no line, lines beyond one a task. excused: a node whose
    own task may fail, for nobody else could do it."""
    asker = mesh.nodes["asker"]
    ended = wait_until(lambda: told(asker, team).get("outcome", "") != "", END_WAIT_S)
    tasks = told(asker, team).get("tasks", [])
    written = _ledger.lines(ledger)
    failed = [task for task in tasks if task["state"] != "succeeded" and not is_excused(task, excused)]
    for task in failed:
        say(f"  {task['skill']} at {task['agent']}: {task['state']} {task['note']}")
    without_line = sum(task["state"] != "succeeded" for task in tasks if task["skill"] == "ledger.write")
    missing = max(0, WRITERS - without_line - len(set(written)))
    return {"lost": len(failed) + missing + (not ended), "double": len(written) - len(set(written))}


def is_excused(task: dict[str, Any], node: str) -> bool:
    return (task["node"], task["state"], task["note"]) == (node, "failed", "worker lost")


def decided(node: MeshNode, team: str) -> frozenset[tuple[str, str, str, int]]:
    """Every task as this node knows it decided: id, worker, state, attempt."""
    tasks = told(node, team).get("tasks", [])
    return frozenset((task["task"], task["node"], task["state"], task["attempt"]) for task in tasks)


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
