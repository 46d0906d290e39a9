"""Teams of members of two versions: older ones meet kinds of decisions, fields and states that they do not know."""

from typing import Any, get_args

import pytest

from ioa_p2p.errors import PeerError
from ioa_p2p.team import saved_state
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Propose
from ioa_p2p.team.events import Halted
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.role import Role
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import PreVoteReply, PreVoteRequest, VoteReply, VoteRequest
from ioa_p2p.wire.step import Step, decode_step, is_known
from tests.sim.election import Trial
from tests.sim.jobs import Jobs
from tests.sim.team_mutants import with_election
from tests.sim.teams import coordinator, members
from tests.sim.versions import LATER, longer_step, of_two_versions, version
from tests.team.people import ROSTER
from tests.vectors.samples import UNSIGNED


class Meeting:
    """A team of seven at work. Two members are of the older version, when a coordinator of the newer one decides
    something that they do not know."""

    def __init__(self, seed: int, part: Any = Teams) -> None:
        self.newer: set[bytes] = set()
        self.jobs = Jobs(seed, machine=of_two_versions(self.newer, part), run_s=lambda spec: 8.0)
        self.jobs.start()
        self.jobs.launch()
        assert self.jobs.world.run(30, until=lambda: len(self.jobs.runs) >= 3)
        lead = self.jobs.coordinator()
        assert lead is not None
        self.lead = lead
        devices = [self.jobs.node(f"device-{number}") for number in (1, 2, 3)]
        self.old = [node for node in devices if node != lead][:2]
        self.newer |= set(self.jobs.nodes) - set(self.old)
        self._decide()
        assert self.jobs.world.run(3, until=lambda: len(self.jobs.told(Halted)) == 2)

    def lose_lead(self) -> list[Any]:
        """What the older ones say until another coordinates."""
        said, jobs = list[Any](), self.jobs
        jobs.world.on_send.append(lambda world, node, to, message: said.append(message) if node in self.old else None)
        jobs.crash(self.lead)
        assert jobs.world.run(10, until=lambda: jobs.coordinator() not in (None, self.lead))
        return said

    def _decide(self) -> None:
        world, team = self.jobs.world, self.jobs.teams()[self.lead]
        host = world.hosts[self.lead]
        now = world.now(host)
        with version(newer=True):
            effects = team._settle(now, team.election.handle_command(now, Propose(LATER, b"later")))
        world._carry_out(host, effects)


def test_older_members_say_so_once_keep_the_log_and_end_what_they_began() -> None:
    meeting = Meeting(1)
    jobs, world = meeting.jobs, meeting.jobs.world
    assert world.run(120, until=lambda: jobs.concluded_among(meeting.newer))
    world.run(2)
    teams = jobs.teams()
    ends = {teams[node].election.commit_index for node in jobs.nodes}
    assert len(ends) == 1, "every member holds the whole log"
    assert sorted(node for _, node, event in world.events if isinstance(event, Halted)) == sorted(meeting.old)
    assert all("newer version" in event.reason for event in jobs.told(Halted))
    for node in meeting.newer:
        assert teams[node].state.conclusion is not None
        assert teams[node].state.conclusion.outcome == "done"
    for node in meeting.old:
        assert teams[node].state.conclusion is None
        assert [run.over for run in jobs.runs if run.node == node] == [True], "what it ran has ended, and no more began"


def has_a_part(message: Any) -> bool:
    """In an election: it votes, would vote, or asks for votes."""
    match message:
        case PreVoteReply(granted=granted):
            return granted
        case VoteReply(vote=vote):
            return bool(vote)
        case _:
            return isinstance(message, PreVoteRequest | VoteRequest)


@pytest.mark.parametrize("seed", range(1, 4))
def test_older_members_neither_vote_nor_stand_and_the_newer_ones_elect_among_themselves(seed: int) -> None:
    meeting = Meeting(seed)
    jobs = meeting.jobs
    said = meeting.lose_lead()
    assert jobs.coordinator() in meeting.newer
    assert jobs.world.run(120, until=lambda: jobs.concluded_among(meeting.newer - {meeting.lead}))
    assert any(isinstance(message, PreVoteReply) for message in said), "nobody asked them"
    assert not any(map(has_a_part, said))


class VotesBlindly(Election):
    """As if what it cannot read could not change who votes."""

    @property
    def _can_judge(self) -> bool:
        return self._log.may_vote


def test_an_older_member_that_votes_on_is_seen() -> None:
    assert any(map(has_a_part, Meeting(1, with_election(VotesBlindly)).lose_lead()))


def test_an_older_member_that_is_updated_has_the_teams_state_again() -> None:
    meeting = Meeting(1)
    jobs = meeting.jobs
    updated = meeting.old[0]
    jobs.crash(updated)
    meeting.newer.add(updated)
    jobs.restart(updated)
    assert jobs.world.run(120, until=lambda: jobs.concluded_among(meeting.newer - {updated}))
    jobs.world.run(2)
    teams = jobs.teams()
    assert teams[updated].state.conclusion is not None
    assert vars(teams[updated].state) == vars(teams[meeting.lead].state)
    assert sum(node == updated for _, node, event in jobs.world.events if isinstance(event, Halted)) == 1


def test_an_older_member_that_starts_again_as_it_was_takes_up_nothing() -> None:
    """What it knows of its task may long be overruled."""
    meeting = Meeting(1)
    jobs = meeting.jobs
    again = meeting.old[0]
    assert [run.over for run in jobs.runs if run.node == again] == [False]
    jobs.crash(again)
    jobs.restart(again)
    assert jobs.world.run(10, until=lambda: jobs.teams()[again].coordinator is not None)
    jobs.world.run(5)
    assert jobs.teams()[again].outdated
    assert len([run for run in jobs.runs if run.node == again]) == 1


def test_an_older_member_that_gets_the_state_in_place_of_the_decision_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    meeting = Meeting(1)
    jobs = meeting.jobs
    behind, lead = meeting.old[0], jobs.teams()[meeting.lead]
    unread = jobs.teams()[behind].election.electorates.unread
    jobs.crash(behind)
    assert jobs.world.run(60, until=lambda: lead.election.first_index > unread + 4)
    jobs.restart(behind)
    jobs.world.run(5)
    mine = jobs.teams()[behind]
    assert (mine.outdated, mine.halted, mine.election.electorates.unread) == ("", "", 0)
    assert vars(mine.state) == vars(lead.state)


def test_an_unknown_entry_bars_nobody_once_it_is_overwritten() -> None:
    trial = Trial(1, Election, 3)
    trial.start()
    world = trial.world
    assert world.run(5, until=lambda: coordinator(world) is not None)
    first = next(node for node, member in members(world).items() if member.role is Role.COORDINATOR)
    for other in set(trial.nodes) - {first}:
        world.cut(first, other)
        world.cut(other, first)
    world.command(first, Propose(LATER, b"later"))
    unread = members(world)[first].electorates.unread
    assert unread == members(world)[first].last_index
    assert world.run(10, until=lambda: (found := coordinator(world)) is not None and found.coordinator != first)
    world.mend()
    assert world.run(10, until=lambda: members(world)[first].electorates.unread == 0)


@pytest.mark.parametrize("step", [each for each in UNSIGNED if isinstance(each, get_args(Step))], ids=repr)
def test_fields_that_a_newer_version_appended_to_a_step_are_skipped(step: Step) -> None:
    assert is_known(longer_step(step))
    assert decode_step(longer_step(step)) == step


@pytest.mark.parametrize(
    "step", [b"", b"no array", b"\x90", b"\x91\x01", b"\x91\xa5la", codec.encode(("discuss", "wrong"))], ids=repr
)
def test_what_no_version_can_read_is_no_sign_of_a_newer_one(step: bytes) -> None:
    assert is_known(step)


def test_a_state_that_a_newer_version_saved_is_refused() -> None:
    state = TeamState(ROSTER)
    _, *fields = codec.read_any(saved_state.encode(state))
    with pytest.raises(PeerError, match="this program knows"):
        saved_state.decode(codec.encode([saved_state.VERSION + 1, *fields]))
    assert vars(saved_state.decode(codec.encode([saved_state.VERSION, *fields, "more"]))) == vars(state)
