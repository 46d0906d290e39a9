"""The launcher forms its team anew when the majority is lost: one try.

    SURVEYING ── all asked answered, or time ──> PULLING the longest log ──> INVITING ── all signed ──> founded
        │ one of them is led, or we are                                         ^    │ one did not sign: left out
        v                                                                       └────┘
      given up, to be tried again after another lease and grace

Who signs keeps silent in the old incarnation for `PROMISE_S`, and we found within `SIGN_S` of asking, over the very log
that was adopted: so whatever a signer acknowledged is adopted. Nothing is saved before the founding: a launcher that
dies in the middle begins anew. Source: docs/adr/0011-form-anew-by-the-launcher.md.
"""

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Effect, Emit, Now, Send
from ioa_p2p.errors import PeerError
from ioa_p2p.team import survey
from ioa_p2p.team.adoption import adopt
from ioa_p2p.team.decisions import founding_frame
from ioa_p2p.team.events import ReformFailed, Reforming
from ioa_p2p.team.roster import check_signature, sign
from ioa_p2p.team.team import Team
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.roster import Roster
from ioa_p2p.wire.step import Found, encode_step
from ioa_p2p.wire.team import Invitation, Survey, Tail

SIGN_S = 4.0  # from the invitation to the founding
PROMISE_S = 6.0  # from the signature on; longer, whatever the clocks' rates
_SURVEY_S = 3.0
_PULL_S = 10.0  # for a part of the longest log to come, before the next longest is taken

End = tuple[int, int]
"""(last term, last index) of a log."""


class Reform:
    """`founding` and `state` (adopted) are there once everybody signed; `over` when nothing is left to do."""

    def __init__(self, key: NodeKey, network: bytes, team: Team, now: Now) -> None:
        self._key, self._network, self._team = key, network, team
        self._asked = team.election.electorate.nodes - {key.node}
        self._until_s = now.boot + _SURVEY_S
        self._ends: dict[bytes, End] = {}
        self._source: bytes | None = None
        self._pulled: list[bytes] = []
        self._base = team.election.commit_index
        self._roster = b""
        self._adopted_end: End = (0, 0)
        self._invites: dict[bytes, bytes] = {}
        self.founding = self.state = b""
        self.over = False

    @property
    def incarnation(self) -> int:
        """The one that it founds."""
        return self._team.election.incarnation + 1

    @property
    def voters(self) -> frozenset[bytes]:
        """Who is invited; nobody yet while logs are compared."""
        return codec.decode(self._roster, Roster).voters if self._roster else frozenset()

    def begin(self, now: Now) -> list[Effect]:
        told = Emit(Reforming(self._team.team, tuple(sorted(self._asked))))
        return [told, *self._ask(), *self._go_on(now)]

    def tick(self, now: Now) -> list[Effect]:
        """Call every half second or so, and after whatever the team's log took."""
        if self._team.election.coordinator is not None:
            return self.fail("led")
        if now.boot < self._until_s:
            return [*self._ask(), *self._go_on(now)]
        if self._roster:
            return self._invite(now, self.voters - self._unsigned)
        if self._source is not None:
            self._ends.pop(self._source)
        else:
            self._asked = frozenset(self._ends)
        self._source = None
        return self._go_on(now)

    # -- answers

    def on_tail(self, now: Now, peer: bytes, tail: Tail) -> list[Effect]:
        """Raises PeerError if what it holds does not prove itself: its log then counts for nothing."""
        if self._roster or peer not in self._asked or tail.incarnation + 1 != self.incarnation:
            return []
        if tail.led:
            return self.fail("led")
        self._ends[peer] = (tail.last_term, tail.last_index)
        if peer == self._source:
            return self._pull(now, peer, tail)
        return self._go_on(now)

    def on_signature(self, now: Now, peer: bytes, frame: bytes) -> list[Effect]:
        """Raises PeerError('wrong-invite' or as frames do). One for an older roster is dropped."""
        if not self._roster:
            return []
        if check_signature(frame, self._network, self._roster, self._team.team) != peer or peer not in self.voters:
            raise PeerError("wrong-invite", "not a voter of this roster, or not the sender's own")
        self._invites[peer] = frame
        return self._found_if_complete(now)

    def on_decline(self, now: Now, peer: bytes, reason: str) -> list[Effect]:
        """Who is led, or has a longer log by now, ends this try; anybody else is left out."""
        if peer not in self._unsigned:
            return []
        return self.fail(reason) if reason in ("led", "longer-log") else self._invite(now, self.voters - {peer})

    def fail(self, code: str) -> list[Effect]:
        self.over = True
        return [Emit(ReformFailed(self._team.team, code))]

    # -- the longest log

    def _ask(self) -> list[Effect]:
        if self._roster:
            return [Send(node, Invitation(self._roster)) for node in sorted(self._unsigned)]
        asked = [self._source] if self._source is not None else sorted(self._asked - self._ends.keys())
        return [Send(node, self._question(node)) for node in asked]

    def _question(self, node: bytes) -> Survey:
        election = self._team.election
        after = self._base + len(self._pulled)
        return Survey(self._team.team, election.incarnation, election.term, after, election.arrived_bytes(node))

    def _go_on(self, now: Now) -> list[Effect]:
        """Once all have answered: take the longest log over, then invite."""
        if self._roster or self._source is not None or self._asked - self._ends.keys():
            return []
        end, longest = max(((end, node) for node, end in self._ends.items()), default=((0, 0), b""))
        if end <= self._team.election.log.end:
            return self._invite(now, frozenset({self._key.node, *self._ends}))
        self._source, self._pulled, self._base = longest, [], self._team.election.commit_index
        self._until_s = now.boot + _PULL_S
        return self._ask()

    def _pull(self, now: Now, peer: bytes, tail: Tail) -> list[Effect]:
        commit = self._team.election.commit_index
        if commit != self._base:  # its snapshot has come
            self._pulled, self._base = [], commit
        if tail.after != self._base + len(self._pulled) or len(self._pulled) > limits.DECISION_LOG_ENTRIES_MAX:
            return []
        self._pulled += tail.entries
        if tail.entries:
            self._until_s = now.boot + _PULL_S
        if self._base + len(self._pulled) < tail.last_index:
            return self._ask() if tail.entries else []
        self._source = None
        return [*self._take(now, peer), *self._go_on(now)]

    def _take(self, now: Now, peer: bytes) -> list[Effect]:
        try:
            entries = survey.verified(self._team.election, self._base, self._pulled, self._ends[peer])
        except PeerError:
            self._asked, _ = self._asked - {peer}, self._ends.pop(peer)
            raise
        return self._team.take_tail(now, entries)

    # -- who goes on

    @property
    def _unsigned(self) -> frozenset[bytes]:
        return self.voters - self._invites.keys()

    def _invite(self, now: Now, signers: frozenset[bytes]) -> list[Effect]:
        election = self._team.election
        roster, self.state = adopt(self._team.state, election, signers)
        self._roster, self._adopted_end = codec.encode(roster), election.log.end
        self._invites = {self._key.node: sign(self._key, self._network, self._roster, now)}
        self._until_s = now.boot + SIGN_S
        return [*self._ask(), *self._found_if_complete(now)]

    def _found_if_complete(self, now: Now) -> list[Effect]:
        if self._unsigned:
            return []
        election = self._team.election
        if election.coordinator is not None or election.log.end != self._adopted_end or now.boot > self._until_s:
            return self.fail("changed")
        invites = tuple(frame for _, frame in sorted(self._invites.items()))
        step, team = encode_step(Found(self._roster, invites)), self._team.team
        self.founding = founding_frame(self._key, self._network, team, self.incarnation, int(now.wall), step)
        self.over = True
        return []
