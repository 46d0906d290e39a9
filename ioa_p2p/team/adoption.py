"""What a team that was formed anew stands on: all that its last incarnation had, up to the adopted entry.

decided state ── undecided entries of the longest log ──> adopted state ── bytes, hash ──> Roster.adopted
adopted state ── the new roster, entry 0 ──> the state that the new log begins from
"""

from ioa_p2p.errors import PeerError
from ioa_p2p.team import saved_state
from ioa_p2p.team.election import Election
from ioa_p2p.team.standing import Standing
from ioa_p2p.team.state import Committed, TeamState, step_of
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.roster import Adopted, Member, Roster


def with_tail(state: TeamState, election: Election, last: int) -> TeamState:
    """`state` with all entries up to `last`, as if they were decided."""
    ahead = state.copy()
    for held in election.log.between(state.index + 1, last):
        entry = held.entry
        ahead.apply(Committed(entry.index, entry.term, entry.node, entry.at, step_of(entry.step)))
    return ahead


def adopt(state: TeamState, election: Election, signers: frozenset[bytes]) -> tuple[Roster, bytes]:
    """The roster that `signers` are to sign, and the adopted state. All of our log is adopted."""
    log, ahead = election.log, with_tail(state, election, election.log.last_index)
    data, old = saved_state.encode(ahead), ahead.roster
    before = old.adopted.absent if old.adopted is not None else ()
    absent = tuple(node for node in dict.fromkeys((*sorted(ahead.standing.nodes), *before)) if node not in signers)
    term, index = log.end
    adopted = Adopted(
        election.incarnation, index, term, log.last.hash, blake(data), saved_state.VERSION, absent[: limits.ABSENT_MAX]
    )
    roster = codec.replace(
        old,
        incarnation=election.incarnation + 1,
        members=_members(old, signers),
        keepers=tuple(node for node in old.keepers if node in signers),
        adopted=adopted,
    )
    return roster, data


def _members(old: Roster, signers: frozenset[bytes]) -> tuple[Member, ...]:
    """If nobody is left who may lead, the launcher does: it is its own goal, which would have no end otherwise."""
    left = tuple(member for member in old.members if member.node in signers)
    if any(member.may_coordinate for member in left):
        return left
    return tuple(codec.replace(one, may_coordinate=True) if one.node == old.launcher else one for one in left)


def founded_on(roster: Roster, data: bytes) -> TeamState:
    """The state at entry 0 of `roster`'s incarnation; data: the adopted state, or nothing at a first formation.

    Raises PeerError('wrong-state' | 'other-version' | 'undecodable')."""
    if roster.adopted is None:
        return TeamState(roster)
    check_state(roster.adopted, data)
    state = saved_state.decode(data)
    state.roster, state.standing = roster, Standing(roster.voters, roster.candidates)
    state.budget = state.budget.seat(len(roster.members))
    state.index = state.term = 0
    state.tasks = {task: row.given_in(0) for task, row in state.tasks.items()}
    return state


def check_state(adopted: Adopted, data: bytes) -> None:
    if adopted.version != saved_state.VERSION:
        raise PeerError("other-version", "its state is of another version than this program")
    if blake(data) != adopted.state:
        raise PeerError("wrong-state", "not the state that was adopted")


def own_state(state: TeamState, election: Election, adopted: Adopted) -> bytes:
    """The adopted state, if our log reaches to it; else nothing."""
    held = election.log.get(adopted.index)
    if held is None or held.hash != adopted.entry or not state.index <= adopted.index:
        return b""
    return saved_state.encode(with_tail(state, election, adopted.index))
