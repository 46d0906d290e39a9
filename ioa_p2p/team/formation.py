"""The launcher's side of forming one team: call, choose, invite, found.

    CALLING ── bids in, or time ──> INVITING ── all signed ──> founded
                    ^                  │ somebody did not sign: left out
                    └──────────────────┘ nobody left for a needed role: failed

Idempotent under loss and repetition: what has no answer is asked again, and the state is journaled (space
"launch", key team) before anything is sent, so a launcher that dies in the middle goes on with the same team.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ioa_p2p.crypto.envelope import open_frame
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Save, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.steps import Role
from ioa_p2p.team.commands import Launch
from ioa_p2p.team.decisions import founding_frame
from ioa_p2p.team.events import Bidding, BidHeard, Connect, LaunchFailed
from ioa_p2p.team.roster import check_signature, sign
from ioa_p2p.team.witness import WITNESS, with_witness
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.roster import Member, Roster
from ioa_p2p.wire.step import Found, encode_step
from ioa_p2p.wire.team import Bid, Call, Invitation

SPACE = "launch"
Agent = tuple[bytes, str]
"""(node, agent)."""


@dataclass(frozen=True)
class Journal:
    """What a launcher must not forget. roster: the encoded roster last sent out, or nothing while calling.
    silent: nodes left out because they did not sign."""

    launch: Launch
    created: int
    bids: tuple[Bid, ...] = ()
    declined: tuple[Agent, ...] = ()
    silent: tuple[bytes, ...] = ()
    roster: bytes = b""
    invites: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])


class Formation:
    """One launch. `founding` is entry 0 once everybody signed; `over` when nothing is left to do."""

    def __init__(self, key: NodeKey, network: bytes, journal: Journal, now: Now) -> None:
        self._key = key
        self._network = network
        self._journal = journal
        self._until = now.boot + self._stage_s
        self.founding = b""
        self.over = False

    def begin(self) -> list[Effect]:
        """Journal first; then wish for links and ask. Also after a restart."""
        launch = self._journal.launch
        called = [*launch.policy.witnesses, *(each for role in launch.roles for each in role.candidates)]
        wanted = {each.node: each.addresses for each in called}
        links = [Emit(Connect(node, addresses)) for node, addresses in wanted.items() if node != self._key.node]
        return [self._save(), *links, *self.ask()]

    def ask(self, node: bytes | None = None) -> list[Effect]:
        """Ask whoever has not answered yet (or only `node`, whose link just came up)."""
        if self._journal.roster:
            return [Send(to, Invitation(self._journal.roster)) for to in self._unsigned() if node in (None, to)]
        return [Send(agent[0], call) for agent, call in self._unanswered() if node in (None, agent[0])]

    def tick(self, now: Now) -> list[Effect]:
        """Call every half second or so."""
        if now.boot < self._until:
            return self.ask()
        if not self._journal.roster:
            return self._choose(now)
        self._journal = replace(self._journal, silent=(*self._journal.silent, *self._unsigned()))
        return self._choose(now)

    def cancel(self) -> list[Effect]:
        return self._fail("cancelled", ())

    # -- answers

    def on_bid(self, now: Now, peer: bytes, frame: bytes) -> list[Effect]:
        """Raises PeerError('wrong-bid' or as frames do)."""
        bid = open_frame(frames.parse(frame), self._network, Kind.BID, Bid)
        agent = (bid.member.node, bid.member.agent)
        called = dict(self._calls()).get(agent)
        if called is None or bid.node != peer or bid.node != agent[0] or bid.expires < now.wall - limits.CLOCK_SKEW_S:
            raise PeerError("wrong-bid")
        if any(bid.member.skill(skill) is None for skill in called.skills):
            raise PeerError("wrong-bid", "it lacks the skill it was called for")
        if self._journal.roster or agent in self._answered():
            return []
        self._journal = replace(self._journal, bids=(*self._journal.bids, bid))
        told = Bidding(self._journal.launch.team, len(self._calls()), len(self._journal.bids))
        heard = BidHeard(told.team, *agent, willing=True, load=bid.load)
        return [self._save(), Emit(heard), Emit(told), *self._choose_if_complete(now)]

    def on_decline(self, now: Now, peer: bytes, agent: str, reason: str) -> list[Effect]:
        if self._journal.roster:
            return self._drop(now, peer)
        if (peer, agent) not in dict(self._calls()) or (peer, agent) in self._answered():
            return []
        self._journal = replace(self._journal, declined=(*self._journal.declined, (peer, agent)))
        heard = BidHeard(self._journal.launch.team, peer, agent, willing=False, reason=reason)
        return [self._save(), Emit(heard), *self._choose_if_complete(now)]

    def on_signature(self, now: Now, peer: bytes, frame: bytes) -> list[Effect]:
        """Raises PeerError('wrong-invite' or as frames do). One for an older roster is dropped."""
        if not self._journal.roster:
            return []
        signer = check_signature(frame, self._network, self._journal.roster, self._journal.launch.team)
        if signer != peer or signer not in self._roster.voters:
            raise PeerError("wrong-invite", "not a voter of this roster, or not the sender's own")
        self._journal = replace(self._journal, invites={**self._journal.invites, signer: frame})
        return [self._save(), *self._found_if_complete(now)]

    # -- steps

    def _choose_if_complete(self, now: Now) -> list[Effect]:
        return self._choose(now) if not self._unanswered() else []

    def _choose(self, now: Now) -> list[Effect]:
        """The best bids make the roster; everybody in it is invited. `created` is now, not when the launch began: by it
        members see how their clocks differ."""
        launch = self._journal.launch
        chosen = {role.name: self._best(role) for role in launch.roles}
        missing = tuple(role.name for role in launch.roles if role.needed and not chosen[role.name])
        if missing or not any(chosen.values()):
            return self._fail("too-few" if self._journal.silent else "nobody-fits", missing)
        members = self._members(chosen)
        roster = Roster(
            launch.team, 0, launch.goal, self._key.node, members, int(now.wall),
            self._journal.created + launch.policy.goal_s, launch.policy.caps, launch.ancestors,
            keepers=keepers(members),
        )  # fmt: skip
        encoded = codec.encode(roster)
        if len(encoded) > limits.ROSTER_BYTES_MAX:
            return self._fail("too-large", missing)
        mine = sign(self._key, self._network, encoded, now)
        self._journal = replace(self._journal, roster=encoded, invites={self._key.node: mine})
        self._until = now.boot + self._stage_s
        return [self._save(), *self.ask(), *self._found_if_complete(now)]

    def _best(self, role: Role) -> list[Bid]:
        """The role's bids, cheapest first; between equals the candidates' order decides."""
        order = [(one.node, one.agent) for one in role.candidates]
        bids = {(bid.member.node, bid.member.agent): bid for bid in self._journal.bids}
        fit = [bids[agent] for agent in order if agent in bids and agent[0] not in self._journal.silent]
        fit.sort(key=lambda bid: (bid.member.cost, bid.load, bid.ready_at))
        return fit[: role.count + self._journal.launch.policy.spares] if role.count else fit

    def _members(self, chosen: dict[str, list[Bid]]) -> tuple[Member, ...]:
        """The launcher first, then the roles' first choices before any spare, as many as fit."""
        launch, picked = self._journal.launch, dict[Agent, Member]()
        picked[self._key.node, launch.me.agent] = launch.me
        counts = {role.name: role.count or len(chosen[role.name]) for role in launch.roles}
        first = [bid for role in launch.roles for bid in chosen[role.name][: counts[role.name]]]
        spare = [bid for role in launch.roles for bid in chosen[role.name][counts[role.name] :]]
        for bid in (*first, *spare):
            picked.setdefault((bid.member.node, bid.member.agent), self._allowed_to_lead(bid.member))
        most = min(launch.policy.members_max, launch.policy.caps.budget.agents + 1)
        there = [bid for bid in self._journal.bids if bid.node not in self._journal.silent]
        return with_witness(tuple(picked.values())[:most], there, always=launch.policy.witness_always)

    def _allowed_to_lead(self, member: Member) -> Member:
        """A stranger's willingness is not enough."""
        leaders = {self._key.node, *self._journal.launch.policy.leaders}
        return member if member.node in leaders else codec.replace(member, may_coordinate=False)

    def _found_if_complete(self, now: Now) -> list[Effect]:
        if self._unsigned():
            return []
        invites = tuple(self._journal.invites[node] for node in sorted(self._journal.invites))
        step = encode_step(Found(self._journal.roster, invites))
        team = self._journal.launch.team
        self.founding = founding_frame(self._key, self._network, team, 0, int(now.wall), step)
        self.over = True
        return [Save(SPACE, team, None)]

    def _drop(self, now: Now, node: bytes) -> list[Effect]:
        """A member that refuses to sign is left out at once."""
        if node not in self._unsigned():
            return []
        self._journal = replace(self._journal, silent=(*self._journal.silent, node))
        return self._choose(now)

    def _fail(self, code: str, missing: tuple[str, ...]) -> list[Effect]:
        self.over = True
        team = self._journal.launch.team
        return [Save(SPACE, team, None), Emit(LaunchFailed(team, code, missing))]

    # -- what is open

    @property
    def _stage_s(self) -> float:
        policy = self._journal.launch.policy
        return policy.signs_s if self._journal.roster else policy.bids_s

    @property
    def _roster(self) -> Roster:
        return codec.decode(self._journal.roster, Roster)

    def _calls(self) -> list[tuple[Agent, Call]]:
        """One call an agent, for all the skills it is wanted for."""
        launch, skills = self._journal.launch, dict[Agent, set[str]]()
        for role in launch.roles:
            for one in role.candidates:
                skills.setdefault((one.node, one.agent), set()).update(role.skills)
        skills.update(((one.node, WITNESS), set()) for one in launch.policy.witnesses)
        deadline = self._journal.created + launch.policy.goal_s
        return [
            (agent, Call(launch.team, agent[1], tuple(sorted(names)), launch.goal, deadline, launch.ancestors))
            for agent, names in list(skills.items())[: limits.CALLS_MAX]
        ]

    def _answered(self) -> set[Agent]:
        bids = {(bid.member.node, bid.member.agent) for bid in self._journal.bids}
        return bids | set(self._journal.declined)

    def _unanswered(self) -> list[tuple[Agent, Call]]:
        answered = self._answered()
        return [(agent, call) for agent, call in self._calls() if agent not in answered]

    def _unsigned(self) -> list[bytes]:
        return sorted(self._roster.voters - set(self._journal.invites))

    def _save(self) -> Save:
        return Save(SPACE, self._journal.launch.team, codec.encode(self._journal))


def keepers(members: Sequence[Member]) -> tuple[bytes, ...]:
    """The two nodes of highest rank (it tells of power and links); the earlier in the roster between equals. Rank 0
    never keeps."""
    ranks: dict[bytes, int] = {}
    for member in members:
        ranks.setdefault(member.node, member.rank)
    able = [node for node, rank in ranks.items() if rank]
    return tuple(sorted(able, key=lambda node: -ranks[node])[: limits.KEEPERS_MAX])
