"""Who a team is: its members in their own words, and the roster that each of them signs. docs/wire.md, "Teams"."""

from typing import Annotated

from msgspec import Meta

from ioa_p2p.wire import limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.decision import TeamId
from ioa_p2p.wire.records import Address, AgentName, EffectClass, NodeKey, SkillName, Wall, Word
from ioa_p2p.wire.spending import Allowance

Goal = Annotated[str, Meta(max_length=limits.GOAL_CHARS_MAX)]
Brief = Annotated[str, Meta(max_length=limits.BRIEF_CHARS_MAX)]
Count = Annotated[int, Meta(ge=0, le=1 << 32)]
Small = Annotated[int, Meta(ge=0, le=255)]
Types = Annotated[tuple[Word, ...], Meta(max_length=16)]
Ancestors = Annotated[tuple[TeamId, ...], Meta(max_length=limits.ANCESTORS_MAX)]
InviteBytes = Annotated[bytes, Meta(max_length=limits.INVITE_FRAME_BYTES_MAX)]


ANY_GOAL = "team.form"
"""The skill of an agent that reaches any goal by a team of its own."""


class SkillBrief(Message, frozen=True):
    """One skill as a roster tells it: enough to plan by. Types as in `records.Skill`. nests: its agent does it by a
    team of its own."""

    name: SkillName
    inputs: Types = ()
    outputs: Types = ()
    effect: EffectClass = "pure"
    description: Brief = ""
    nests: bool = False


class Member(Message, frozen=True):
    """One agent of a team, in its own words: the bid carries it, the roster repeats it.

    may_coordinate: this node is willing (and, in a roster, allowed) to lead. rank: 0..255, higher leads
    sooner; it only shortens timers. cost: what the agent asks, in its owner's unit.
    """

    node: NodeKey
    agent: AgentName
    skills: Annotated[tuple[SkillBrief, ...], Meta(max_length=limits.RECORD_SKILLS_MAX)] = ()
    addresses: Annotated[tuple[Address, ...], Meta(max_length=limits.RECORD_ADDRESSES_MAX)] = ()
    may_coordinate: bool = False
    rank: Small = 0
    cost: Count = 0
    description: Brief = ""

    def skill(self, name: str) -> SkillBrief | None:
        return next((skill for skill in self.skills if skill.name == name), None)


class Caps(Message, frozen=True):
    """What no planner can talk its way out of. turns: discussion steps. repeats: the same line said again.
    empty: lines without a word. plans: planner outputs in a row that could not be used. Wall time is the
    roster's deadline. budget: of the whole goal."""

    turns: Count = 40
    repeats: Count = 2
    empty: Count = 3
    plans: Count = 3
    budget: Allowance = Allowance(agents=limits.AGENTS_BELOW_MAX)


class Roster(Message, frozen=True):
    """Who the team is. Encoded once by the launcher; every member signs the hash of these bytes.

    launcher: also one of the members' nodes. created, deadline: wall seconds. ancestors: teams above
    this one, the root first. epoch: encryption epoch (reserved). keepers: members that hold all files of
    the team and serve who was away.
    """

    team: TeamId
    incarnation: Count
    goal: Goal
    launcher: NodeKey
    members: Annotated[tuple[Member, ...], Meta(min_length=limits.TEAM_MEMBERS_MIN, max_length=limits.TEAM_MEMBERS_MAX)]
    created: Wall
    deadline: Wall
    caps: Caps = Caps()
    ancestors: Ancestors = ()
    epoch: Count = 0
    keepers: Annotated[tuple[NodeKey, ...], Meta(max_length=limits.KEEPERS_MAX)] = ()

    @property
    def voters(self) -> frozenset[bytes]:
        """The distinct nodes: one vote each, however many agents."""
        return frozenset(member.node for member in self.members)

    @property
    def candidates(self) -> frozenset[bytes]:
        """The nodes that may lead."""
        return frozenset(member.node for member in self.members if member.may_coordinate)
