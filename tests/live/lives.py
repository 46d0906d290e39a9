"""Many lives of one small mesh (mortal.py), each ended by kill -9 at a save; the next begins from what it left.

deaths ── one process each ──> facts ──> lost (a told fact is no more so), votes_twice, starts
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
LIFE_S = 600.0  # a life that is longer hangs
KINDS = ("launch", "invite", "team", "vote", "decision", "task", "chat", "dht", "trust")


class Death(NamedTuple):
    """At the `nth` group of a life with a row of `kind`; when: "before" it is durable, or "after"."""

    kind: str
    nth: int
    when: str


@dataclass
class Lives:
    """deaths: those that came to pass. starts: lives that nothing but their death
    ended. lost: facts that were told and are no more so, and lives that hung. unfinished: goals that
    ended otherwise than well: members that restart may sign too late.
    """

    folder: Path
    deaths: int = 0
    starts: int = 0
    lost: list[str] = field(default_factory=list)
    votes_twice: int = 0
    unfinished: int = 0
    _ended: dict[str, str] = field(default_factory=dict)
    _founded: set[str] = field(default_factory=set)
    _votes: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def live(self, deaths: Iterable[Death]) -> "Lives":
        """One life for each death, and a last one that ends well."""
        for death in deaths:
            self.deaths += self._life(*map(str, death)) == -signal.SIGKILL
        if self._life("none", "1", "after") != 0:
            self.lost.append("the last life did not end well")
        self.lost += [f"team {team} never ended" for team in self._founded - self._ended.keys()]
        return self

    def _life(self, *death: str) -> int:
        command = [sys.executable, "-m", "tests.live.mortal", str(self.folder), *death]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIFE_S, check=False
            )
        except subprocess.TimeoutExpired:
            self.lost.append(f"a life hung, to end by {' '.join(death)}")
            return 0
        if done.returncode not in (0, -signal.SIGKILL):
            self.lost.append(done.stderr[-2_000:])
        else:
            self.starts += 1
        for line in done.stdout.splitlines():
            self._hear(json.loads(line))
        return done.returncode

    def _hear(self, fact: dict[str, Any]) -> None:
        match fact:
            case {"fact": "started", "degraded": degraded}:
                self.lost += filter(None, degraded)
            case {"fact": "founded", "team": team}:
                self._founded.add(team)
            case {"fact": "ended", "team": team, "outcome": outcome, "answer": answer}:
                self._hear_end(team, f"{outcome}: {answer}")
            case {"fact": "vote", "voter": voter, "team": team, "term": term, "vote": vote} if vote:
                before = self._votes.setdefault((voter, team, term), vote)
                self.votes_twice += before != vote

    def _hear_end(self, team: str, end: str) -> None:
        self.unfinished += team not in self._ended and not end.startswith("concluded: Hello")
        before = self._ended.setdefault(team, end)
        if before != end:
            self.lost.append(f"team {team} ended as {before}, then as {end}")
