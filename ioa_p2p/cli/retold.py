"""A replayed event as people read it: when, what, and who, in one line each.

{"kind": "said", "at": ..., "who": "writer", ...} ──> "   +12 s  said      writer: ..."
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ioa_p2p.cli.output import one_line

Event = Mapping[str, Any]
SUMMARY_CHARS_MAX = 400  # of an outcome; the file has all of it


class Retold:
    """Remembers when the team began, and its phase."""

    def __init__(self) -> None:
        self._began: int | None = None
        self._phase = ""

    def lines(self, event: Event) -> Iterator[str]:
        """None for what tells a reader nothing new."""
        if event["kind"] == "roster":
            self._began = event["at"]
        tell = self._tellers().get(event["kind"])
        for text in filter(None, tell(event) if tell else ()):
            yield one_line(f"{self._when(event)}  {text}")

    def _when(self, event: Event) -> str:
        """Seconds after the founding, by the clock of whoever signed it."""
        if self._began is None or "at" not in event:
            return " " * 9
        return f"{event['at'] - self._began:+7} s"

    def _tellers(self) -> dict[str, Callable[[Event], list[str]]]:
        return {
            "transcript": lambda e: [f"team      {e['team']} as {e['node'][:8]} has it"],
            "roster": self._roster,
            "member": lambda e: [f"member    {', '.join(e['agents'])}@{e['node'][:8]} {e['how']}"],
            "earlier": lambda e: [f"earlier   entry {e['index']} by {e['node'][:8]}: {e['step']} {e['text']}".rstrip()],
            "restored": self._restored,
            "elected": self._elected,
            "phase": self._entered,
            "asked": lambda e: [f"asked     {self._who(e)}: {e['text']}"],
            "said": lambda e: [f"said      {self._who(e)}: {e['text'] or '(nothing)'}"],
            "chat": lambda e: [f"chat      {e['node'][:8]}, line {e['seq']}: {e['text']}"],
            "task": self._task,
            "waits": lambda e: [f"waits     for {e['mode']} of {', '.join(task[:6] for task in e['tasks'])}"],
            "spent": lambda e: [f"spent     {_cost(e['cost'])} on planning"],
            "refused": lambda e: [f"refused   entry {e['index']} by the team's rules: {e['code']}"],
            "forked": lambda e: [
                f"forked    {e['node'][:8]} signed two histories; it counts up to line {e['counts_to']}"
            ],
            "absent": lambda e: [f"missing   {e['what']} {e['first']} to {e['last']} {e['name'][:8]}".rstrip()],
            "concluded": self._concluded,
        }

    def _roster(self, event: Event) -> list[str]:
        members = ", ".join(map(self._agent, event["members"]))
        return [f"goal      {event['goal']}", f"roster    {len(event['members'])} members: {members}"]

    def _restored(self, event: Event) -> list[str]:
        members, tasks = ", ".join(map(self._agent, event["members"])), event["tasks"]
        told = [
            f"task      {task['task'][:6]} {task['skill']} by {self._agent(task)} {task['state']}" for task in tasks
        ]
        return [f"restored  as of entry {event['index']}, in {event['phase']}, with {members}", *told]

    def _elected(self, event: Event) -> list[str]:
        who, votes, voters = event["coordinator"][:8], event["votes"], event["voters"]
        return [f"elected   {who} leads term {event['term']} with {votes} of {voters} votes"]

    def _entered(self, event: Event) -> list[str]:
        changed, self._phase = event["phase"] != self._phase, event["phase"]
        return [f"phase     {self._phase}"] if changed else []

    def _task(self, event: Event) -> list[str]:
        again = f" (attempt {event['attempt']})" if event["attempt"] > 1 else ""
        what, who = f"task      {event['task'][:6]} {event['skill']}", self._agent(event)
        if event["state"] == "offered":
            return [f"{what} to {who}{again}: {event['note'] or event['goal']}"]
        note = event["summary"][:SUMMARY_CHARS_MAX] or event["note"]
        cost = f" [{_cost(event['cost'])}]" if _cost(event["cost"]) else ""
        files = [f"file      {one['name']}, {one['bytes']} bytes, {one['hash'][:16]}" for one in event["files"]]
        return [f"{what} by {who} {event['state']}{again}{cost}: {note}", *files]

    def _concluded(self, event: Event) -> list[str]:
        evidence = [f"evidence  {one['task'][:6]}: {one['text']}" for one in event["evidence"]]
        credit = "credit    {who}: {tasks} x {skill}, {state}"
        credits_ = [credit.format(**one, who=self._agent(one)) for one in event["credits"]]
        cost = [f"cost      {_cost(event['cost'])}"] if _cost(event["cost"]) else []
        return [f"ended     {event['why']}: {event['answer']}", *evidence, *credits_, *cost]

    @staticmethod
    def _agent(one: Event) -> str:
        return f"{one['agent']}@{one['node'][:8]}"

    @staticmethod
    def _who(event: Event) -> str:
        return f"{event['who']}@{event['node'][:8]}"


def _cost(cost: Event) -> str:
    """Nothing where nothing was spent."""
    money = f"{cost['money'] / 1_000_000:g} of money" if cost.get("money") else ""
    counts = (f"{cost[name]} {name}" for name in ("tokens", "calls") if cost.get(name))
    return ", ".join(filter(None, (*counts, money)))
