"""Whole teams that change while they work: members come and go, logs are cut short, nobody loses the thread."""

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.team.commands import AddMember, Offer, RemoveMember, StandAside
from ioa_p2p.team.events import AdmissionFailed, Halted, RosterChanged
from ioa_p2p.wire import limits
from ioa_p2p.wire.roster import Member
from ioa_p2p.wire.team import Decline
from tests.sim.jobs import CAST, TEAM, Jobs
from tests.team.people import COUNT

LATE = "late"


def working(seed: int = 1) -> Jobs:
    """A team of seven at a long job; `late` knows nothing of it yet."""
    jobs = Jobs(seed, {**CAST, LATE: ()})
    jobs.run_s = lambda spec: 60.0
    jobs.start()
    jobs.world.command(jobs.node(LATE), Offer((joining(jobs),)))
    jobs.launch()
    assert jobs.world.run(20, until=lambda: len(jobs.teams()) == 7 and jobs.coordinator() is not None)
    jobs.world.run(3)
    return jobs


def joining(jobs: Jobs) -> Member:
    return Member(jobs.node(LATE), LATE, (COUNT,), ("/memory/late",), True, 100)


def add(jobs: Jobs) -> AddMember:
    return AddMember(TEAM, jobs.node(LATE), LATE, (COUNT.name,), ("/memory/late",), may_coordinate=True)


def lead(jobs: Jobs) -> bytes:
    found = jobs.coordinator()
    assert found is not None
    return found


def other(jobs: Jobs) -> bytes:
    """A member that neither coordinates nor launched."""
    return next(node for node in jobs.nodes if node in jobs.teams() and node not in (lead(jobs), jobs.asker))


def test_a_newcomer_learns_the_log_and_then_votes() -> None:
    jobs = working()
    late = jobs.node(LATE)
    jobs.world.command(jobs.asker, add(jobs))
    assert jobs.world.run(10, until=lambda: late in jobs.teams()[jobs.asker].state.standing.voters)
    jobs.world.run(2)
    team, theirs = jobs.teams()[late], jobs.teams()[jobs.asker]
    assert (team.state.index, team.state.standing) == (theirs.state.index, theirs.state.standing)
    assert team.election.electorate == theirs.election.electorate
    assert team.state.member(late, LATE) == joining(jobs)
    assert [event.how for event in jobs.told(RosterChanged, jobs.asker)] == ["admitted", "promoted"]
    assert set(jobs.world.faults) <= {"unknown-team"}, "only before it was told that the team stands"


def test_nobody_else_can_decline_for_a_newcomer() -> None:
    jobs = working()
    late = jobs.node(LATE)
    jobs.world.command(jobs.asker, add(jobs))
    jobs.world.deliver(other(jobs), jobs.asker, Decline(TEAM, LATE, "busy"))
    assert jobs.world.run(10, until=lambda: late in jobs.teams()[jobs.asker].state.standing.voters)
    assert jobs.told(AdmissionFailed) == []


def test_a_newcomer_may_be_elected_and_remembers_over_a_restart() -> None:
    jobs = working()
    late = jobs.node(LATE)
    jobs.world.command(jobs.asker, add(jobs))
    assert jobs.world.run(10, until=lambda: late in jobs.teams()[jobs.asker].state.standing.voters)
    jobs.world.restart(late)
    jobs.world.run(1)
    for node in jobs.nodes:
        if node != late:
            jobs.world.command(node, StandAside(True))
    assert jobs.world.run(10, until=lambda: jobs.coordinator() == late)


def test_an_agent_that_does_not_want_is_not_let_in() -> None:
    jobs = working()
    jobs.world.command(jobs.node(LATE), Offer(()))
    jobs.world.command(jobs.asker, add(jobs))
    assert jobs.world.run(12, until=lambda: bool(jobs.told(AdmissionFailed)))
    assert [event.code for event in jobs.told(AdmissionFailed)] == ["no-such-agent"]


def test_only_the_launcher_and_the_coordinators_owner_change_the_team() -> None:
    jobs = working()
    for command in (add(jobs), RemoveMember(TEAM, other(jobs))):
        if jobs.coordinator() != other(jobs):
            with pytest.raises(UsageError) as refused:
                jobs.world.command(other(jobs), command)
            assert refused.value.code == "not-allowed"


def test_who_is_removed_sleeps_and_the_others_go_on_without_it() -> None:
    jobs = working()
    gone = other(jobs)
    jobs.world.command(jobs.asker, RemoveMember(TEAM, gone, 7))
    assert jobs.world.run(5, until=lambda: gone not in jobs.teams()[jobs.asker].state.standing.nodes)
    jobs.world.run(2)
    told = jobs.told(RosterChanged, gone)
    assert [(event.how, event.node, event.cut) for event in told] == [("removed", gone, 7)]
    assert jobs.teams()[gone].asleep
    with pytest.raises(UsageError) as refused:
        jobs.world.command(jobs.asker, RemoveMember(TEAM, gone))
    assert refused.value.code == "not-a-member"


def test_who_was_away_while_it_was_removed_disturbs_nobody_and_is_told() -> None:
    jobs = working()
    gone = other(jobs)
    jobs.crash(gone)
    jobs.world.command(jobs.asker, RemoveMember(TEAM, gone))
    jobs.world.run(35)
    term = jobs.teams()[jobs.asker].election.term
    jobs.restart(gone)
    assert jobs.world.run(10, until=lambda: jobs.teams()[gone].asleep)
    assert jobs.teams()[jobs.asker].election.term == term


def test_a_coordinator_that_removes_itself_leads_until_it_is_decided() -> None:
    jobs = working()
    first = lead(jobs)
    jobs.world.command(first, RemoveMember(TEAM, first))
    assert jobs.world.run(5, until=lambda: jobs.coordinator() not in (None, first))
    jobs.world.run(2)
    everyone = [team for node, team in jobs.teams().items() if node != first]
    assert all(first in team.state.standing.gone for team in everyone)


def test_a_member_far_behind_takes_the_state_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    monkeypatch.setattr(limits, "SNAPSHOT_PART_BYTES_MAX", 1_000)
    jobs = Jobs(3)
    jobs.start()
    away = jobs.node("writer")
    jobs.launch()
    assert jobs.world.run(20, until=lambda: len(jobs.teams()) == 7)
    jobs.crash(away)
    assert jobs.world.run(60, until=lambda: jobs.teams()[jobs.asker].election.first_index >= 8)
    jobs.restart(away)
    behind = jobs.teams()[away].election.first_index
    assert jobs.world.run(90, until=jobs.settled)
    jobs.world.run(3)
    mine, theirs = jobs.teams()[away], jobs.teams()[jobs.asker]
    assert behind < mine.election.first_index
    assert any(event.how == "restored" for event in jobs.told(RosterChanged, away))
    assert vars(mine.state) == vars(theirs.state)
    assert jobs.world.faults == {}


def test_a_restart_begins_at_the_checkpoint_with_the_same_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    jobs = Jobs(1)
    jobs.start()
    jobs.launch()
    assert jobs.world.run(60, until=jobs.settled)
    before = dict(vars(jobs.teams()[jobs.asker].state))
    jobs.world.restart(jobs.asker)
    again = jobs.teams()[jobs.asker]
    assert vars(again.state) == before
    assert again.election.first_index >= 8


def test_a_member_whose_state_differs_stops_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    jobs = Jobs(1)
    jobs.start()
    jobs.launch()
    assert jobs.world.run(20, until=lambda: len(jobs.teams()) == 7 and jobs.coordinator() is not None)
    wrong = other(jobs)
    jobs.teams()[wrong].state.repeats += 1
    assert jobs.world.run(60, until=lambda: bool(jobs.told(Halted)))
    assert [node for _, node, event in jobs.world.events if isinstance(event, Halted)] == [wrong]
    assert jobs.teams()[wrong].halted
