"""A transcript: a script and its full log, in one text. tests/transcripts/election/*.txt

    # why
    start a                       what is done: start, restart, timer, step-down; propose a TEXT; link a b down
        a: save term 0            what came of it: each effect, in its order
    pass a b                      deliver what a sent to b; `pass` alone: all, until nobody sends more
      a->b
        b: to a vote yes term 1
    lose a b                      drop what a sent to b
    wait 0.5                      seconds

Played again it must give the same text. `python -m tests.team.stage FILE...` writes files anew: read what changed.
"""

import random
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ioa_p2p.effects import Effect, Emit, Now, Save, Send, SetTimer
from ioa_p2p.errors import IoaError
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team.decisions import HardState
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Committed, Deposed, Elected, LinkPeer, Propose, Stale, StepDown
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import Ack, Append, HandOver, PreVoteReply, PreVoteRequest, VoteReply, VoteRequest
from tests.sim.teams import TEAM, Cast

FOLDER = Path(__file__).parent.parent / "transcripts" / "election"
TIMER = f"election/{TEAM.hex()}"


class Halfway(random.Random):
    """Dice that always show the middle."""

    def random(self) -> float:
        return 0.5


class Stage:
    """Members "a", "b", ... with disks and a hand-set clock; `play` returns the log of a script."""

    def __init__(self, size: int, **cast: Any) -> None:
        self.cast = Cast(size, **cast)
        self.names = {node: chr(ord("a") + place) for place, node in enumerate(self.cast.nodes)}
        self.nodes = {name: node for node, name in self.names.items()}
        self.disks = {name: MemoryStorage() for name in self.nodes}
        self.members: dict[str, Election] = {}
        self.mail: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
        self.time_s = 0.0
        self._log: list[str] = []

    def play(self, script: str) -> str:
        """The transcript of `script`; lines that begin with a space are a log's and are written anew."""
        self._log = []
        for line in script.splitlines():
            if line and not line.startswith(" "):
                self._log.append(line)
                self._attempt(lambda line=line: line.startswith("#") or self._do(*line.split()))
        return "\n".join(self._log) + "\n"

    @property
    def now(self) -> Now:
        return Now(1_800_000_000.0 + self.time_s, 100.0 + self.time_s)

    def deliver(self, source: str, target: str, message: Any) -> None:
        self._take(target, self.members[target].handle_message(self.now, self.nodes[source], message))

    def _do(self, verb: str, *words: str) -> None:
        match verb, words:
            case "start" | "restart", (name,):
                self._start(name)
            case "timer", (name,):
                self._take(name, self.members[name].handle_timer(self.now, TIMER))
            case "wait", (seconds,):
                self.time_s += float(seconds)
            case "pass", (source, target):
                self._pass(source, target)
            case "pass", ():
                while waiting := [pair for pair, queue in self.mail.items() if queue]:
                    self._pass(*min(waiting))
            case "lose", (source, target):
                self.mail.pop((source, target), None)
            case "lose-disk", (name,):
                self.disks[name] = MemoryStorage()
                self.cast.lost.add(self.nodes[name])
            case _:
                self._take(words[0], self.members[words[0]].handle_command(self.now, self._command(verb, words)))

    def _start(self, name: str) -> None:
        disk, node = self.disks[name], self.nodes[name]
        self.members[name] = self.cast.make(node, lambda space: list(disk.scan(space)), Halfway(), self.now)
        self._take(name, self.members[name].start(self.now))

    def _pass(self, source: str, target: str) -> None:
        for message in self.mail.pop((source, target), []):
            self._log.append(f"  {source}->{target}")
            self._attempt(lambda message=message: self.deliver(source, target, message))

    def _attempt(self, do: Callable[[], object]) -> None:
        try:
            do()
        except IoaError as fault:
            self._log.append(f"    {type(fault).__name__} {fault.code}")

    def _command(self, verb: str, words: tuple[str, ...]) -> Any:
        match verb, words:
            case "propose", (_, text):
                return Propose(text.encode(), text.encode())
            case "link", (_, other, state):
                return LinkPeer(self.nodes[other], state == "up")
            case "step-down", _:
                return StepDown()
        raise AssertionError(f"no such line: {verb} {words}")

    # -- effects as text

    def _take(self, name: str, effects: list[Effect]) -> None:
        self.disks[name].commit([effect for effect in effects if isinstance(effect, Save)])
        for effect in effects:
            self._log.append(f"    {name}: {self._text(effect)}")
            if isinstance(effect, Send):
                self.mail[name, self.names[effect.to]].append(effect.message)

    def _text(self, effect: Effect) -> str:
        match effect:
            case Save(key=b"state", value=bytes(value)):
                state = codec.decode(value, HardState)
                vote = f" vote {self.names[state.vote]}" if state.vote else ""
                return f"save term {state.term}{vote}{'' if state.may_vote else ' never votes'}"
            case Save(key=b"commit", value=bytes(value)):
                return f"save commit {int.from_bytes(value, 'big')}"
            case Save(key=key, value=value):
                return f"{'drop' if value is None else 'save'} entry {int.from_bytes(key, 'big')}"
            case Send(to=to, message=message):
                return f"to {self.names[to]} {self._message(message)}"
            case SetTimer(at=at):
                return "no timer" if at is None else f"timer +{round(at - self.now.boot, 3)}"
            case Emit(event=event):
                return self._event(event)

    def _message(self, message: Any) -> str:
        match message:
            case PreVoteRequest():
                return f"pre-vote? term {message.term} log {message.last_term}.{message.last_index}"
            case PreVoteReply():
                return f"pre-vote {'yes' if message.granted else 'no'} term {message.term}"
            case VoteRequest():
                how = " hand-over" if message.hand_over else ""
                return f"vote? term {message.term} log {message.last_term}.{message.last_index}{how}"
            case VoteReply():
                return f"vote {'yes' if message.vote else 'no'} term {message.term}"
            case Append():
                after = f"after {message.previous_term}.{message.previous_index}"
                proof = f" certificate of {len(message.certificate)}" if message.certificate else ""
                return f"append term {message.term} {after} +{len(message.entries)} commit {message.commit}{proof}"
            case Ack(ok=True):
                return f"ack term {message.term} index {message.index}"
            case Ack():
                return f"refuse term {message.term} index {message.index} hint {message.hint}"
            case HandOver():
                return f"hand-over term {message.term}"
        raise AssertionError(message)

    def _event(self, event: Any) -> str:
        match event:
            case Committed():
                return f"decided {event.index} {event.entry.step.decode() or 'elect'}"
            case Elected():
                return f"elected {self.names[event.coordinator]} in term {event.term}"
            case Deposed():
                return f"deposed in term {event.term}"
            case Stale():
                return f"stale: incarnation {event.incarnation}"
        raise AssertionError(event)


def replay(text: str) -> str:
    """The transcript of a transcript's script. Its first line says "members N"."""
    first, _, rest = text.partition("\n")
    return f"{first}\n{Stage(int(first.split()[1])).play(rest)}"


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(replay(path.read_text()))
