"""Teams within teams, three levels over eight processes: does every goal end well when a child's coordinator is killed?

    asker ──> valley-a, valley-b ──> wood-a, wood-b ──> leaf-a, leaf-b, leaf-c      each works for the level above alone
    goal, sync (one valley) and async (both, then a sum) ──> a leaf runs ── SIGKILL of who leads a valley's team, and so
    of a wood, which may be the one whose own team works just then ──> the end ──> it starts again

`./dev bench nested [--json] [--rounds 3]`: kills of each mode, after one goal of each without.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._measure import say
from examples.mesh import ROOT, Mesh, MeshNode, free_ports, ready, wait_until

LEVELS = (("asker",), ("valley-a", "valley-b"), ("wood-a", "wood-b"), ("leaf-a", "leaf-b", "leaf-c"))
GOALS = {"sync": ("Survey one valley", "3 trunks"), "async": ("Add up the totals of every region", "6 trunks")}
TEAMS = {
    "valley": ("Count what the wood has", "valley.survey", "valley.total", "Survey the valley of one region."),
    "wood": ("Measure each trunk", "wood.count", "wood.trees", "Count what the wood has."),
}
"""Agent -> what its teams are for, its skill, output and description."""

GOAL_S = 120
WORK_S = 8.0  # of a leaf: longer than an orphan may live
POINT_WAIT_S = 60.0
SETTLE_S = 20.0


@dataclass(frozen=True)
class Kill:
    """orphan_end_s: until the team that the victim had formed for its own task had ended at all others; None: it had
    none."""

    victim: MeshNode
    orphan_end_s: float | None = None


@dataclass(frozen=True)
class Outcome:
    """One goal. moved: the root gave its task to another member. left: teams that did not end somewhere."""

    finished: bool
    seconds: float
    kill: Kill | None
    moved: bool
    left: int


def main() -> None:
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="ioa-") as folder, Mesh(Path(folder), "nested") as mesh:
        build(mesh, Path(folder))
        outcomes = [one_goal(mesh, mode, kill=False) for mode in GOALS]
        outcomes += [one_goal(mesh, mode, kill=True) for _ in range(options.rounds) for mode in GOALS]
        processes = len(mesh.nodes)
    kills = [one.kill for one in outcomes if one.kill is not None]
    orphans = [kill.orphan_end_s for kill in kills if kill.orphan_end_s is not None]
    figures = {
        "finished": round(sum(one.finished for one in outcomes) / len(outcomes), 4),
        "goals": len(outcomes),
        "coordinators_killed": len(kills),
        "teams_orphaned": len(orphans),
        "orphan_end_s_max": round(max(orphans, default=0.0), 2),
        "moved_at_the_root": sum(one.moved for one in outcomes),
        "teams_left": sum(one.left for one in outcomes),
        "goal_s": median(one.seconds for one in outcomes if one.kill is None),
        "goal_with_kill_s": median(one.seconds for one in outcomes if one.kill is not None),
        "levels": len(LEVELS) - 1,
        "processes": processes,
        "load_avg": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(figures) if options.json else "\n".join(f"{name:30} {value}" for name, value in figures.items()))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench nested")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3, help="kills of each mode")
    return parser.parse_args()


def median(values: Any) -> float:
    found = list(values)
    return round(statistics.median(found), 2) if found else 0.0


# -- the mesh


def build(mesh: Mesh, folder: Path) -> None:
    """Each level may use the one below, and lets it lead; valleys do not lead what they launch. The last leaf works for
    the asker too."""
    ports = free_ports(2)
    names = [name for level in LEVELS for name in level]
    mesh.make({name: arguments(name, folder, dict(zip(("asker", "leaf-a"), ports, strict=True))) for name in names})
    for place, level in enumerate(LEVELS):
        near = [*LEVELS[place - 1], *level] if place else list(level)
        near += LEVELS[place + 1] if place + 1 < len(LEVELS) else LEVELS[0]
        for name in level:
            mesh.nodes[name].write("allow", [mesh.nodes[other].id for other in near])
    mesh.introduce(["asker", "leaf-a"])
    for node in mesh.nodes.values():
        node.start()
    ready(mesh.nodes.values())


def arguments(name: str, folder: Path, ports: dict[str, int]) -> list[str]:
    kind = name.split("-")[0]
    agents = [] if kind == "asker" else [team_table(folder, kind) if kind in TEAMS else leaf_table(folder, name)]
    port = ["--set", f"dht.port={ports[name]}"] if name in ports else []
    leads = ["--set", "may_coordinate=false"] if kind == "valley" else []
    return [*(word for path in agents for word in ("--agent", str(path))), *port, *leads]


def team_table(folder: Path, agent: str) -> Path:
    goal, skill, output, about = TEAMS[agent]
    skills = f'[{{ name = "{skill}", outputs = ["{output}"], description = "{about}" }}]'
    path = folder / f"{agent}.toml"
    path.write_text(f'[agents.{agent}]\nadapter = "team"\ngoal = "{goal}"\nskills = {skills}\n')
    return path


def leaf_table(folder: Path, name: str) -> Path:
    """The last leaf adds up, all others measure."""
    function = "add" if name == LEVELS[-1][-1] else "measure"
    path = folder / f"{function}.toml"
    target = json.dumps(f"{ROOT / 'bench' / '_grove.py'}:{function}")
    path.write_text(f'[agents.{function}]\nadapter = "python"\ntarget = {target}\nenv = {{ GROVE_S = "{WORK_S}" }}\n')
    return path


# -- one goal


def one_goal(mesh: Mesh, mode: str, *, kill: bool) -> Outcome:
    asker, (goal, right) = mesh.nodes["asker"], GOALS[mode]
    began = time.monotonic()
    root = asker.ask("ask", goal, "--detach", "--timeout", str(GOAL_S))["team"]
    done = kill_a_coordinator(mesh, root) if kill else None
    wait_until(lambda: told(asker, root).get("outcome", "") != "", GOAL_S + SETTLE_S)
    seconds = time.monotonic() - began
    result: dict[str, Any] = told(asker, root).get("result") or {}
    finished = (result.get("why"), result.get("answer")) == ("done", right)
    moved = any(task["attempt"] > 1 for task in told(asker, root).get("tasks", []))
    if done is not None:
        done.victim.start()
        ready([done.victim])
    wait_until(lambda: not open_teams(mesh), SETTLE_S)
    left = open_teams(mesh)
    who = "nobody" if done is None else done.victim.name
    orphan = f" (its own team ended after {done.orphan_end_s:.1f} s)" if done and done.orphan_end_s is not None else ""
    say(f"{mode}: {who} killed{orphan}, {result.get('why')}: {result.get('answer')!r} after {seconds:.1f} s, "
        f"{len(left)} teams left")  # fmt: skip
    return Outcome(finished, seconds, done, moved, len(left))


def kill_a_coordinator(mesh: Mesh, root: str) -> Kill | None:
    """Of a child of `root`, while a leaf works for it."""
    found: dict[str, Any] = {}

    def at_the_point() -> bool:
        found.clear()
        found.update(working_child(mesh, root) or {})
        return bool(found)

    if not wait_until(at_the_point, POINT_WAIT_S):
        return None
    victim = mesh.by_id(found["coordinator"])
    orphans = [one["team"] for one in found["children"] if one["node"] == victim.id and one["state"] == "offered"]
    victim.kill()
    killed = time.monotonic()
    if not orphans:
        return Kill(victim)
    wait_until(lambda: not set(orphans) & open_teams(mesh), SETTLE_S)
    return Kill(victim, time.monotonic() - killed)


def working_child(mesh: Mesh, root: str) -> dict[str, Any] | None:
    """A team right below `root` with a coordinator, below which a leaf runs."""
    for name in LEVELS[1]:
        children = [team for team in teams(mesh.nodes[name]) if team["parent"] == root and not team["outcome"]]
        for child in children:
            team = told(mesh.nodes[name], child["team"])
            below = {one["team"] for one in team.get("children", [])}
            if team.get("coordinator") and any(is_measured(mesh.nodes[wood], below) for wood in LEVELS[2]):
                return team
    return None


def is_measured(wood: MeshNode, below: set[str]) -> bool:
    open_here = [team["team"] for team in teams(wood) if team["team"] in below and not team["outcome"]]
    return any(task["state"] == "running" for team in open_here for task in told(wood, team).get("tasks", []))


def open_teams(mesh: Mesh) -> set[str]:
    return {team["team"] for node in mesh.running for team in teams(node) if not team["outcome"]}


def teams(node: MeshNode) -> Sequence[dict[str, Any]]:
    return node.call("teams").get("teams", [])


def told(node: MeshNode, team: str) -> dict[str, Any]:
    return node.call("team", team=team)


if __name__ == "__main__":
    main()
