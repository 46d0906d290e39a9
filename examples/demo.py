"""One mesh, end to end: `./dev demo [--kill coordinator|worker|seed|asker] [--hosts] [--no-load] [--json]`.

    birch, rowan       two seeds that know each other; all other nodes know one of them
    kitchen ...        three devices, each with an agent that measures its own node
    desk, press, pen   an analyst, a charter, a writer; `spare` can do all three
                       (both with near misses: agents whose skills sound right and are not)
    home               asks, by `ioa-p2p ask`

With --hosts each node has a host of its own (hosts.py): a network namespace with an address, on one switch.
One device, drawn at random, is put under a real load and nobody is told. The team that forms must find it.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples import verdict
from examples.asking import Asking, Event, Seen
from examples.hosts import Hosts, HostsError, lacking
from examples.mesh import ROOT, CommandError, Mesh, MeshNode, free_ports, ready, together
from ioa_p2p.cli.output import Output
from ioa_p2p.cli.progress import Progress
from ioa_p2p.llm.endpoint import place_of

GOAL = "How are my devices doing? Find anything unusual, and write a short report with a chart."
ASKER = "home"
SEEDS = ("birch", "rowan")
DEVICES = ("kitchen", "studio", "cellar")
PLACES: dict[str, tuple[str, ...]] = {
    "birch": ("gardener",),
    "rowan": ("translator",),
    **dict.fromkeys(DEVICES, ("device",)),
    "desk": ("analyst",),
    "press": ("charter",),
    "pen": ("writer",),
    "spare": ("analyst", "charter", "writer"),
}
"""Node -> its agents: files of examples/devices/."""

PHASES = {"DISCUSSION", "SYNC_ASSIGN", "ASYNC_ASSIGN", "PAUSE", "CONCLUSION"}
NO_MODEL = "plans     by rules; by a model where OPENAI_BASE_URL and OPENAI_API_KEY are set (docs/planner.md)"
KILLABLE = ("coordinator", "worker", "seed", "asker")
TASKS_AT_KILL_MIN = 2
KILL_DELAY_S_MAX = 1.0
SETTLE_S = 5.0
HOSTS_NET = "10.77.0"
GOAL_S = 120  # what the team may take; on a quiet machine it needs a fifth


@dataclass
class Demo:
    """One run: what was drawn, what was seen, what came out."""

    mesh: Mesh
    out: Output
    rng: random.Random
    kill: str | None
    stressed: str | None
    hosts: Hosts | None = None
    planner: str = ""
    seen: Seen = field(default_factory=Seen)
    told: set[str] = field(default_factory=set[str])
    kill_at: float | None = None
    killed: str = ""
    tasks_running_at_kill: int = 0

    @property
    def asker(self) -> MeshNode:
        return self.mesh.nodes[ASKER]

    @property
    def names(self) -> dict[str, str]:
        """Node id -> the name used here."""
        return {node.id: node.name for node in self.mesh.nodes.values()}

    # -- the mesh

    def set_up(self) -> None:
        """Keys and configs for all, then the processes; returns when every node is ready."""
        names = (ASKER, *PLACES)
        addresses = put_on_hosts(self.hosts, names) if self.hosts else {}
        ports = dict(zip(SEEDS, free_ports(len(SEEDS)), strict=True))
        wanted = ("--set", "planner=llm") if self.planner else ()
        self.mesh.make({name: [*init_arguments(name, ports.get(name), addresses.get(name)), *wanted] for name in names})
        for node in self.mesh.nodes.values():
            node.place = self.hosts.inside(node.name) if self.hosts else ()
        self.mesh.introduce(SEEDS)
        self._grant()
        self.out.say(f"plans     by {self.planner}; by rules where it fails" if self.planner else NO_MODEL)
        self.out.say(
            f"{len(self.mesh.nodes)} nodes made under {self.mesh.folder}; each knows one seed, none knows a hub"
        )
        self.out.say("starting them all at once: about ten seconds")
        for node in self.mesh.nodes.values():
            node.start(self._load(node) if node.name == self.stressed else ())
        for node, status in zip(self.mesh.nodes.values(), ready(self.mesh.nodes.values()), strict=True):
            agents = ", ".join(PLACES.get(node.name, ())) or "asks"
            self.out.say(
                f"up        {node.name:8} pid {node.pid:<7} {node.id[:8]}  {status['dht']:<21} "
                f"peers {status['peers']:<3} {agents}"
            )

    def _grant(self) -> None:
        """Who may give tasks: the asker, to all. Whom the asker lets lead its teams: those who do not measure."""
        leaders = [self.mesh.nodes[name].id for name in PLACES if name not in (*DEVICES, *SEEDS)]
        for node in self.mesh.nodes.values():
            node.write("allow", leaders if node is self.asker else [self.asker.id])

    def _load(self, node: MeshNode) -> list[str]:
        """A shell that starts the load as its child and then becomes the node."""
        script = '"$0" -m examples.load "$1" & shift; exec "$@"'
        return ["sh", "-c", script, sys.executable, str(node.home)]

    def publish_and_search(self) -> None:
        """Records go out by themselves; saying so again shows how many holders each has."""
        holders = [node for node in self.mesh.nodes.values() if node.name in PLACES]
        for node, answer in zip(holders, together(lambda node: node.ask("publish"), holders), strict=True):
            for record in answer["records"]:
                skills = " ".join(record["skills"])
                self.out.say(f"published {record['agent']}@{node.name}: {skills} ({record['copies']} copies)")
        found = self.asker.ask("find", "device", "measure")
        self.out.say(f"search    `find device measure`: {found['hits']} hits, {found['holders']} answers of holders")

    # -- the job

    def run(self) -> Event:
        """Ask, watch, kill when told to; the answer."""
        self.out.say(f'ask       "{GOAL}"')
        answer = self._follow(GOAL, "--timeout", str(GOAL_S))
        if answer.get("ok") or not self._asker_was_killed():
            return answer
        self.out.say("restart   home; `ioa-p2p ask --resume`")
        self.asker.start()
        ready([self.asker])
        return self._follow("--resume", self.seen.team)

    def _follow(self, *arguments: str) -> Event:
        progress = Progress(self.out, self.names)
        asking = Asking(self.asker, *arguments)

        def on_event(event: Event) -> None:
            self.seen.take(event)
            text = json.dumps(event)
            if text not in self.told:  # --resume tells the past again
                self.told.add(text)
                progress.show(event)

        try:
            return asking.follow(on_event, self._kill_when_due)
        finally:
            progress.end()
            asking.end()

    def _kill_when_due(self) -> None:
        """SIGKILL at a random moment while enough tasks run."""
        running = [task for task in self.seen.at_work if task["state"] == "running"]
        if not self.kill or self.killed or len(running) < TASKS_AT_KILL_MIN:
            self.kill_at = None
            return
        now = time.monotonic()
        self.kill_at = self.kill_at or now + self.rng.uniform(0, KILL_DELAY_S_MAX)
        victim = self._victim(running)
        if now >= self.kill_at and victim:
            self.killed, self.tasks_running_at_kill = victim.name, len(running)
            self.out.redraw("")
            self.out.say(f"KILL      {self.kill}: {victim.name} (pid {victim.pid}) while {len(running)} tasks run")
            victim.kill()

    def _victim(self, running: list[Event]) -> MeshNode | None:
        """Whom `--kill` means now. A worker that is not the loaded device: without it there is nothing to find."""
        match self.kill:
            case "asker":
                return self.asker
            case "seed":
                return self.mesh.nodes[self.rng.choice(SEEDS)]
            case "coordinator":
                return self.mesh.by_id(self.seen.coordinator) if self.seen.coordinator else None
            case _:
                workers = {self.mesh.by_id(task["node"]).name for task in running} - {self.stressed, ASKER}
                return self.mesh.nodes[self.rng.choice(sorted(workers))] if workers else None

    def _asker_was_killed(self) -> bool:
        return self.killed == ASKER

    # -- the end

    def figures(self, answer: Event) -> dict[str, Any]:
        """What this run showed, as one flat object."""
        report = verdict.keep(answer.get("files", []), self.mesh.folder / "report")
        text = report.read_text() if report else ""
        rows = verdict.rows_of(text)
        statuses = self._settled()
        samples = verdict.read_samples({device: self.mesh.nodes[device].home for device in DEVICES})
        figures = {
            "outcome": answer.get("outcome", answer.get("code", "")),
            "planner": self.planner or "rules",
            "phases": self.seen.phases,
            "terms": len(self.seen.coordinators),
            "hosts": len(self.mesh.nodes) if self.hosts else 1,
            "stressed": self.stressed,
            "found": verdict.found_in(text),
            "killed": self.killed or None,
            "tasks_running_at_kill": self.tasks_running_at_kill,
            "devices_reported": len(rows),
            "figures_match": verdict.figures_match(rows, samples),
            "tasks_open": sum(status["tasks_open"] for status in statuses),
            "signatures_checked": sum(status["counters"]["signatures_checked"] for status in statuses),
            "report": str(report) if report else None,
            "chart": verdict.is_picture(self.mesh.folder / "report" / "chart.png"),
        }
        return {"ok": self._is_ok(figures, set(rows)), **figures}

    def _is_ok(self, figures: dict[str, Any], reported: set[str]) -> bool:
        killed = not self.kill or figures["tasks_running_at_kill"] >= TASKS_AT_KILL_MIN
        return all(
            (
                figures["outcome"] == "concluded",
                set(figures["phases"]) == PHASES,
                figures["terms"] >= (2 if self.kill == "coordinator" else 1),
                figures["found"] == self.stressed,
                set(DEVICES) - {self.killed} <= reported <= set(DEVICES),
                figures["figures_match"] and figures["chart"],
                figures["tasks_open"] == 0,
                killed,
            )
        )

    def _settled(self) -> list[dict[str, Any]]:
        """Every node's status once no task is open; workers hear of the end a moment after the asker."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            statuses = self._statuses()
            if not any(status["tasks_open"] for status in statuses) or time.monotonic() > deadline:
                return statuses

    def _statuses(self) -> list[dict[str, Any]]:
        return together(lambda node: node.ask("status"), self.mesh.running)


def main() -> None:
    options = read_options()
    if options.hosts and (why := lacking()):
        print(f"demo --hosts: {why}; without --hosts all nodes share this machine's loopback", file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by the blocks below, so that no process stays
    started = time.monotonic()
    rng = random.Random(options.seed)
    stressed = None if options.no_load else rng.choice(DEVICES)
    out = Output(talk=sys.stderr if options.json else sys.stdout)
    out.say(f"a mesh of {len(PLACES) + 1} node processes; draw {options.seed} (--seed {options.seed} repeats it)")
    with new_folder() as folder, Hosts() if options.hosts else nullcontext() as hosts, Mesh(folder) as mesh:
        demo = Demo(mesh, out, rng, options.kill, stressed, hosts, model_named(os.environ))
        try:
            demo.set_up()
            pids = [node.pid for node in mesh.nodes.values()]
            demo.publish_and_search()
            answer = demo.run()
            figures = demo.figures(answer) | {"pids": pids}
        except (CommandError, HostsError) as fault:
            out.say(f"failed: {fault}; each node's log is in its folder in {folder}/nodes")
            sys.exit(1)
    figures |= {"seconds": round(time.monotonic() - started, 1), "runs": 1, "load_avg": os.getloadavg()[0]}
    tell(out, figures, answer, demo.names)
    (folder / "figures.json").write_text(json.dumps(figures))
    if options.json:
        print(json.dumps(figures))


def model_named(environment: Mapping[str, str]) -> str:
    """Who would plan by these variables, in words; empty: rules."""
    place = place_of(environment)
    return f"{place.model or 'the model'} at {place.url}" if place else ""


def cost_told(spent: Mapping[str, int]) -> str:
    """What the plan cost. Tokens are a model's alone."""
    if not spent.get("tokens"):
        return "planned   by rules: the model gave no usable answer; the nodes' logs say why"
    spent_told = f"{spent['tokens']} tokens; {spent['calls']} calls of models and agents"
    return f"planned   with the model, by rules where its answer was of no use: {spent_told}"


def put_on_hosts(hosts: Hosts, names: Iterable[str]) -> dict[str, str]:
    """A host for each, on one switch; their addresses."""
    hosts.net("switch", f"{HOSTS_NET}.0/24")
    addresses = {name: f"{HOSTS_NET}.{number}" for number, name in enumerate(names, 2)}
    for name, address in addresses.items():
        hosts.host(name, "switch", address)
    return addresses


def init_arguments(name: str, port: int | None, address: str | None = None) -> list[str]:
    """Of `ioa-p2p init`. The asker does not lead: whoever reads the answer may close the lid."""
    files = (ROOT / "examples" / "devices" / f"{agent}.toml" for agent in PLACES.get(name, ()))
    arguments = [part for file in files for part in ("--agent", str(file))]
    arguments += ["--set", f"dht.port={port}"] if port else []
    arguments += ["--set", f"dht.host={address}", "--set", f"link.host={address}"] if address else []
    return [*arguments, "--set", f"may_coordinate={'false' if name == ASKER else 'true'}"]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kill", choices=KILLABLE, help="SIGKILL that process while at least two tasks run")
    parser.add_argument("--hosts", action="store_true", help="a network namespace for each node; needs root")
    parser.add_argument("--no-load", action="store_true", help="no device is under load: nothing is to be found")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, the story on stderr")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="repeat a draw")
    return parser.parse_args()


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """out/demo-TIME: nodes with their logs, report, samples. It stays."""
    folder = ROOT / "out" / time.strftime("demo-%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    latest = ROOT / "out" / "demo-latest"
    latest.unlink(missing_ok=True)
    latest.symlink_to(folder.name)
    yield folder


def tell(out: Output, figures: dict[str, Any], answer: Event, names: Mapping[str, str]) -> None:
    """The end, for people."""
    out.say(f"\n{answer.get('answer') or answer.get('message', '')}\n")
    for credit in answer.get("credits", []):
        out.say(f"did       {credit['agent']}@{names[credit['node']]}: {credit['skill']} x{credit['tasks']}")
    if figures["planner"] != "rules" and "cost" in answer:
        out.say(cost_told(answer["cost"]))
    out.say(f"report    {figures['report']}")
    out.say(f"loaded    {figures['stressed'] or 'no device'}; found {figures['found'] or 'nothing'}")
    out.say(f"result    {'ok' if figures['ok'] else 'NOT OK'} after {figures['seconds']} s, terms {figures['terms']}")


if __name__ == "__main__":
    main()
