"""Keys, members, rosters and decided states for team tests. `ann` launches; `bob` and `cy` can count, `dee` mails."""

from collections.abc import Sequence

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Now
from ioa_p2p.team.decisions import founding_frame
from ioa_p2p.team.roster import sign
from ioa_p2p.team.state import Change, Committed, TeamState
from ioa_p2p.wire import codec
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.roster import Caps, Member, Roster, SkillBrief
from ioa_p2p.wire.step import Admit, Found, Input, Step, TaskSpec, encode_step

NETWORK = network_id("test")
TEAM = b"people team 16 B"
WALL = 1_800_000_000
NOW = Now(float(WALL), 100.0)
ANN, BOB, CY, DEE, MALLORY, EVE = (NodeKey(bytes([number]) * 32) for number in range(1, 7))

COUNT = SkillBrief("words.count", (), ("count.result",), "pure")
SUM = SkillBrief("counts.sum", ("count.result*",), ("sum.result",), "idempotent")
MAIL = SkillBrief("mail.send", (), ("mail.receipt",), "once")


def member(key: NodeKey, agent: str, *skills: SkillBrief) -> Member:
    return Member(key.node, agent, skills, (f"/memory/{agent}",), True, 100)


MEMBERS = (member(ANN, "ann"), member(BOB, "bob", COUNT, SUM), member(CY, "cy", COUNT, SUM), member(DEE, "dee", MAIL))
ROSTER = Roster(TEAM, 0, "count the words", ANN.node, MEMBERS, WALL, WALL + 600)


def later(seconds: float) -> Now:
    return Now(NOW.wall + seconds, NOW.boot + seconds)


def founding(roster: Roster = ROSTER, signers: Sequence[NodeKey] = (ANN, BOB, CY, DEE), by: NodeKey = ANN) -> bytes:
    encoded = codec.encode(roster)
    invites = tuple(sign(key, NETWORK, encoded, NOW) for key in signers)
    return founding_frame(by, NETWORK, roster.team, 0, WALL, encode_step(Found(encoded, invites)))


def admission(
    key: NodeKey, *members: Member, by: NodeKey = ANN, team: bytes = TEAM, signer: NodeKey | None = None
) -> Admit:
    """`key` joins as `members` (by default one that can count), invited by `by`."""
    joining = members or (member(key, "eve", COUNT),)
    terms = codec.encode(Roster(team, 0, "count", by.node, (member(by, "ann"), *joining), WALL, WALL + 600))
    return Admit(terms, sign(signer or key, NETWORK, terms, NOW))


def spec(
    number: int, key: NodeKey = BOB, skill: SkillBrief = COUNT, deadline: int = WALL + 600, *inputs: Input
) -> TaskSpec:
    agent = next(one.agent for one in MEMBERS if one.node == key.node)
    return TaskSpec(
        bytes([number]) * 16,
        bytes([100 + number]) * 16,
        key.node,
        agent,
        skill.name,
        "count",
        inputs,
        skill.effect,
        deadline,
    )


class Log:
    """A state and the entries that made it."""

    def __init__(self, caps: Caps | None = None, by: NodeKey = ANN) -> None:
        self.state = TeamState(codec.replace(ROSTER, caps=caps or Caps()))
        self._by = by

    def add(self, *steps: Step, at: int = WALL, term: int = 1) -> list[Change]:
        """Decide these steps; the changes of the last one."""
        changes: list[Change] = []
        for step in steps:
            changes = self.state.apply(Committed(self.state.index + 1, term, self._by.node, at, step))
        return changes


def no_rows(space: str) -> list[tuple[bytes, bytes]]:
    """An empty disk."""
    return []
