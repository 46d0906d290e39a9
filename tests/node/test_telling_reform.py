"""What people are told of a team that two carry, and of one that was formed anew."""

from ioa_p2p.cli.output import Output
from ioa_p2p.cli.progress import Progress
from ioa_p2p.node import telling
from ioa_p2p.team.events import LeftBehind, Reformed, TeamFormed
from ioa_p2p.team.witness import witness
from ioa_p2p.wire import codec
from tests.team.people import CY, DEE, MEMBERS, ROSTER, TEAM

PAIR = codec.replace(ROSTER, members=MEMBERS[:2])


def test_a_team_of_two_says_that_both_are_needed_and_what_helps() -> None:
    note = telling.fragile(PAIR)
    assert note is not None
    assert "both must be there" in note["text"]
    assert "--witness" in note["text"]
    assert telling.fragile(ROSTER) is None
    assert telling.fragile(codec.replace(PAIR, members=(*PAIR.members, witness(DEE.node, ())))) is None


def test_a_team_that_goes_on_says_with_how_many_and_without_whom() -> None:
    told = telling.reformed(Reformed(TEAM, 1, PAIR, (CY.node, DEE.node), 2))
    names = [node[:8] for node in told["absent"]]
    assert told["text"].startswith(f"the team goes on with 2 nodes, without {', '.join(names)}")
    assert "not in it: 2 decisions known here" in told["text"]


def test_who_was_left_behind_is_told_so() -> None:
    told = telling.left_behind(LeftBehind(TEAM, 3, 1))
    assert (told["incarnation"], told["dropped"]) == (3, 1)
    assert "without it" in told["text"]
    assert "1 decision known here" in told["text"]


def test_a_witness_is_shown_as_one(capsys) -> None:
    roster = codec.replace(PAIR, members=(*PAIR.members, witness(DEE.node, ())))
    event = telling.roster(TeamFormed(TEAM, roster))
    names = {one["node"]: one["agent"] for one in event["members"]} | {event["members"][2]["node"]: "phone"}
    Progress(Output(), names).show(event)
    assert "3 members: ann@ann, bob@bob, a witness: phone" in capsys.readouterr().err
