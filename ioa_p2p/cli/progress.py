"""A team at work, told line by line: what the events of `ask` and `resume` mean to a reader.

event ──> Progress.show ──> one line when something changed (stderr)
                        └─> one redrawn line with the running tasks' bars, on a terminal only
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from ioa_p2p.cli.output import Output, one_line

BAR_CELLS = 10
OPEN_STATES = frozenset({"offered", "accepted", "running"})
Event = Mapping[str, Any]


class Progress:
    """names: node id -> a name people know; others are shown by their first eight letters."""

    def __init__(self, out: Output, names: Mapping[str, str] | None = None) -> None:
        self.team = ""
        self.refusals: set[str] = set()
        self._out = out
        self._names = names or {}
        self._started = time.monotonic()
        self._phase = ""
        self._coordinator = ""
        self._found = 0
        self._tasks: dict[str, Event] = {}

    def show(self, event: Event) -> None:
        self.team = event.get("team") or self.team  # before it is told: Ctrl-C may come at once
        self._out.event(event)
        if event["kind"] == "found":
            self._found += 1
        else:
            self._tell_found()
        self._say(one_line(self._line(event)))
        self._out.redraw(self._now())

    def end(self) -> None:
        self._tell_found()
        self._out.redraw("")

    def _tell_found(self) -> None:
        """One line for all: few of them have to do with the goal, and who is asked is told by its bid."""
        if self._found:
            self._say(f"found     {self._found} agent{'s' * (self._found > 1)}")
            self._found = 0

    def _say(self, line: str) -> None:
        if line:
            self._out.redraw("")
            self._out.say(f"{time.monotonic() - self._started:6.1f} s  {line}")

    def _line(self, event: Event) -> str:
        """The sentence for one event; empty when nothing a reader wants to know changed."""
        tell: dict[str, Callable[[Event], str]] = {
            "started": lambda e: f"team      {e['team'][:8]}: {e['goal']}",
            "bid": self._bid,
            "roster": self._roster,
            "elected": self._elected,
            "phase": self._entered,
            "said": lambda e: f"said      {e['who']}: {e['text']}",
            "unsaid": lambda e: f"unsaid    {e['reason']}",
            "task": self._task,
            "orphan": lambda e: f"orphan    {e['task'][:6]} attempt {e['attempt']} {e['state']} too late; kept apart",
            "lacking": lambda e: f"lacking   nobody was found for: {e['need']}",
            "again": lambda e: f"again     without {', '.join(map(self.who, e['without']))}: {e['goal']}",
            "halted": lambda e: f"halted    this node: {e['reason']}",
            "missing": lambda e: f"missing   {e['name']}: {e['note']}",
            "concluded": lambda e: f"ended     {e['outcome']}",
            "note": lambda e: f"note      {e['text']}",
            "reformed": lambda e: f"reformed  {e['text']}",
            "left-behind": lambda e: f"left      {e['text']}",
        }
        return tell.get(event["kind"], lambda _: "")(event)

    def _roster(self, event: Event) -> str:
        """Who works, and who only keeps and votes."""
        workers = [self.who(member) for member in event["members"] if not member.get("witness")]
        witnesses = [self.node(member["node"]) for member in event["members"] if member.get("witness")]
        said = "".join(f", a witness: {name}" for name in witnesses)
        return f"roster    {len(event['members'])} members: {', '.join(workers)}{said}"

    def who(self, event: Event) -> str:
        """agent@node."""
        return f"{event['agent']}@{self.node(event['node'])}"

    def node(self, node: str) -> str:
        return self._names.get(node, node[:8])

    def _bid(self, event: Event) -> str:
        if not event["willing"] and event.get("reason"):
            self.refusals.add(event["reason"])
            return f"bid       {self.who(event)} declines: {event['reason']}"
        return (
            f"bid       {self.who(event)} {'is willing' if event['willing'] else 'declines'}, load {event['load']:.2f}"
        )

    def _elected(self, event: Event) -> str:
        self._coordinator = self.node(event["coordinator"])
        return (
            f"elected   {self._coordinator} leads term {event['term']} with {event['votes']} of {event['voters']} votes"
        )

    def _entered(self, event: Event) -> str:
        changed, self._phase = event["phase"] != self._phase, event["phase"]
        return f"phase     {self._phase}" if changed else ""

    def _task(self, event: Event) -> str:
        before = self._tasks.get(event["task"], {})
        self._tasks[event["task"]] = event
        if (before.get("state"), before.get("attempt")) == (event["state"], event["attempt"]):
            return ""
        again = f" (attempt {event['attempt']})" if event["attempt"] > 1 else ""
        note = f": {event['note']}" if event.get("note") else ""
        return f"task      {event['task'][:6]} {event['skill']} by {self.who(event)} {event['state']}{again}{note}"

    def _now(self) -> str:
        """The redrawn line: phase, coordinator, bars of what runs."""
        running = [task for task in self._tasks.values() if task["state"] in OPEN_STATES]
        bars = "  ".join(f"{task['skill']} {bar(task.get('fraction'))}" for task in running[:3])
        more = f" +{len(running) - 3}" if len(running) > 3 else ""
        found = f"{self._found} found" if self._found else ""
        return f"[{self._phase or 'forming'}] {self._coordinator or found}  {bars}{more}"


def bar(fraction: float | None) -> str:
    """fraction: 0..1, None when unknown."""
    if fraction is None:
        return "·" * BAR_CELLS
    full = round(min(max(fraction, 0.0), 1.0) * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)
