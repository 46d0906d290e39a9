"""What the teams machine tells its node."""

from dataclasses import dataclass

from ioa_p2p.steps import View
from ioa_p2p.team.commands import TaskDone, TaskFailed
from ioa_p2p.team.phases import Phase
from ioa_p2p.wire.roster import Roster
from ioa_p2p.wire.step import Blob, Conclude, TaskSpec


@dataclass(frozen=True, slots=True)
class Bidding:
    """A launch called for bids, or one came in. bids, called: counts so far."""

    team: bytes
    called: int
    bids: int


@dataclass(frozen=True, slots=True)
class BidHeard:
    """A candidate answered the call: willing, or not and why. load: 0..255."""

    team: bytes
    node: bytes
    agent: str
    willing: bool
    load: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """code: "nobody-fits" (no bid for a needed role), "too-few" (members did not sign), "too-large" (the
    roster) or "cancelled". missing: roles."""

    team: bytes
    code: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TeamFormed:
    """Every member signed; the roster is entry 0. Told at each member."""

    team: bytes
    roster: Roster


@dataclass(frozen=True, slots=True)
class Elected:
    """A term has a coordinator."""

    team: bytes
    term: int
    coordinator: bytes


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    team: bytes
    index: int
    before: Phase
    after: Phase


@dataclass(frozen=True, slots=True)
class LineSaid:
    """A turn's line, as decided; the speaker's own node puts it into the channel."""

    team: bytes
    turn: int
    node: bytes
    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnMine:
    """Our agent has the word: answer with `Answer`."""

    team: bytes
    turn: int
    agent: str
    prompt: str


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task's state as this member knows it. decided: from the log; else a worker's report (or the passed
    deadline, where there is no majority). percent: 0..100 or -1. text: the end of what it put out so far."""

    team: bytes
    spec: TaskSpec
    state: str
    decided: bool
    percent: int = -1
    note: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PlanWanted:
    """The planner's turn (at the coordinator only)."""

    view: View


@dataclass(frozen=True, slots=True)
class InputValue:
    """One resolved input. Each source: a MessagePack value, or a blob whose bytes are that value; plus the
    providing task's attachments."""

    type: str
    values: tuple[bytes, ...]
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True)
class StartTask:
    """Run it. inputs: resolved; `spec.key` is the idempotency key, `spec.budget` what is left of it.
    seconds_left: until its deadline, however our wall clock stands to the team's. own: for a goal of this very node."""

    team: bytes
    spec: TaskSpec
    inputs: tuple[InputValue, ...]
    seconds_left: float
    own: bool = False


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Stop running it: cooperative, then TERM, then KILL."""

    team: bytes
    task: bytes
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Concluded:
    """The end, at every member."""

    team: bytes
    conclusion: Conclude


@dataclass(frozen=True, slots=True)
class Connect:
    """A link to this node is wished for."""

    node: bytes
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Orphan:
    """A result that came too late for its attempt: kept and shown, never applied."""

    team: bytes
    task: bytes
    attempt: int
    state: str
    summary: str


@dataclass(frozen=True, slots=True)
class MemoryLost:
    """This node forgot what it had promised in a team, or may have: it never votes in it again. what: for people."""

    team: bytes
    what: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A team that was over for long left no rows here. blobs: hashes of its files that no other team names."""

    team: bytes
    voters: tuple[bytes, ...]
    blobs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PlanRefused:
    """A planner's step broke a rule; it is asked again, a few times."""

    team: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class RosterChanged:
    """Who is in the team changed; `roster` is the new one. how: "admitted" (as a learner), "promoted" (it votes now),
    "removed" (its chat counts up to `cut`), or "restored" (we were away: `node` is empty)."""

    team: bytes
    how: str
    node: bytes
    agents: tuple[str, ...]
    roster: Roster
    cut: int = 0


@dataclass(frozen=True, slots=True)
class AdmissionFailed:
    """code: "declined", "silent" or what the invited node said."""

    team: bytes
    node: bytes
    agent: str
    code: str


@dataclass(frozen=True, slots=True)
class Halted:
    """This member's state is not the team's: it takes no more part in it, and its owner should know."""

    team: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Reforming:
    """At the launcher: no coordinator for lease and grace (or its owner wants it so): `asked` are asked what they
    hold."""

    team: bytes
    asked: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReformFailed:
    """It comes to nothing now. code: "led" (a member hears a coordinator), "longer-log", "changed" (the team
    moved meanwhile)."""

    team: bytes
    code: str


@dataclass(frozen=True, slots=True)
class Reformed:
    """The team goes on in a new incarnation, without `absent`. Told at each member of it. dropped: decisions of the
    old one that we know and that are not adopted."""

    team: bytes
    incarnation: int
    roster: Roster
    absent: tuple[bytes, ...]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """The launcher formed the team anew without us: we take no more part. dropped: likewise."""

    team: bytes
    incarnation: int
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class NestWanted:
    """A task of ours is to be done by a team of its own: search, then `Launch(team, ...)`, or `TaskFailed` for the task
    of `parent`. agent: ours, that the task was given to."""

    team: bytes
    parent: bytes
    task: bytes
    attempt: int
    agent: str
    goal: str
    seconds_left: float


@dataclass(frozen=True, slots=True)
class NestDropped:
    """Nobody wants that team any more: stop looking for it."""

    team: bytes


@dataclass(frozen=True, slots=True)
class NestEnded:
    """A nested team ended: when the files of `end` are here, `end` is the command that tells the team above."""

    team: bytes
    end: TaskDone | TaskFailed
