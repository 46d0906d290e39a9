"""Events of the team machine in the words of docs/control.md: plain JSON objects for people and scripts."""

from typing import Any

from ioa_p2p.gossip.events import Gap, Said
from ioa_p2p.team import events
from ioa_p2p.wire.ids import node_text
from ioa_p2p.wire.roster import Member
from ioa_p2p.wire.spending import Allowance, Spent
from ioa_p2p.wire.step import Conclude, TaskSpec

OUTCOMES = {"done": "concluded", "partial": "concluded", "cap": "concluded", "failed": "failed"} | {
    "cancelled": "cancelled",
    "deadline": "expired",
}
"""What a conclusion means to whoever asked."""


def bid(event: events.BidHeard) -> dict[str, Any]:
    return {
        "kind": "bid",
        "agent": event.agent,
        "node": node_text(event.node),
        "willing": event.willing,
        "load": round(event.load / 255, 2),
        "reason": event.reason,
    }


def nested(event: events.NestWanted) -> dict[str, Any]:
    """The beginning of a team that a task of another is done by."""
    return {"kind": "started", "team": event.team.hex(), "parent": event.parent.hex(), "task": event.task.hex()}


def roster(event: events.TeamFormed) -> dict[str, Any]:
    members = [member(one) for one in event.roster.members]
    return {"kind": "roster", "team": event.team.hex(), "goal": event.roster.goal, "members": members}


def member(one: Member) -> dict[str, Any]:
    return {
        "agent": one.agent,
        "node": node_text(one.node),
        "skills": [skill.name for skill in one.skills],
        "may_coordinate": one.may_coordinate,
    }


def elected(event: events.Elected, votes: int, voters: int) -> dict[str, Any]:
    coordinator = node_text(event.coordinator)
    return {"kind": "elected", "term": event.term, "coordinator": coordinator, "votes": votes, "voters": voters}


def phase(event: events.PhaseChanged) -> dict[str, Any]:
    return {"kind": "phase", "phase": phase_name(event.after), "turn": event.index}


def phase_name(one: Any) -> str:
    """DISCUSSION, SYNC_ASSIGN, ASYNC_ASSIGN, PAUSE, CONCLUSION."""
    return str(one.value).upper().replace("-", "_")


def said(event: events.LineSaid) -> dict[str, Any]:
    return {"kind": "said", "who": event.agent, "node": node_text(event.node), "text": event.text}


def gap(event: Gap) -> dict[str, Any]:
    """Lines of the talk that nobody could be found to have."""
    return {"kind": "gap", **gap_row((event.author, event.first, event.last))}


def gap_row(gap: tuple[bytes, int, int]) -> dict[str, Any]:
    author, first, last = gap
    return {"node": node_text(author), "first": first, "last": last}


def filled(event: Said) -> dict[str, Any]:
    """One of them turned up."""
    return {"kind": "filled", "node": node_text(event.author), "seq": event.seq}


def task(event: events.TaskChanged) -> dict[str, Any]:
    return {
        "kind": "task",
        **spec(event.spec),
        "state": event.state,
        "fraction": None if event.percent < 0 else event.percent / 100,
        "note": event.note,
        "partial": "" if event.state == "succeeded" else event.text,
    }


def spec(one: TaskSpec) -> dict[str, Any]:
    return {
        "task": one.id.hex(),
        "agent": one.agent,
        "node": node_text(one.node),
        "skill": one.skill,
        "attempt": one.attempt,
    }


def roster_changed(event: events.RosterChanged) -> dict[str, Any]:
    node = node_text(event.node) if event.node else ""
    return {"kind": "member", "how": event.how, "node": node, "agents": list(event.agents)}


def not_admitted(event: events.AdmissionFailed) -> dict[str, Any]:
    return {
        "kind": "member",
        "how": f"not admitted: {event.code}",
        "node": node_text(event.node),
        "agents": [event.agent],
    }


def orphan(event: events.Orphan) -> dict[str, Any]:
    return {
        "kind": "orphan",
        "task": event.task.hex(),
        "attempt": event.attempt,
        "state": event.state,
        "note": event.summary,
    }


def result(team: bytes, conclusion: Conclude, files: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    return {
        "team": team.hex(),
        "outcome": OUTCOMES[conclusion.outcome],
        "why": conclusion.outcome,
        "answer": conclusion.answer,
        "files": files,
        "credits": [
            {
                "agent": credit.agent,
                "node": node_text(credit.node),
                "skill": credit.skill,
                "state": credit.state,
                "tasks": credit.tasks,
            }
            for credit in conclusion.credits
        ],
        "evidence": [{"task": each.task.hex(), "text": each.text} for each in conclusion.evidence],
        "cost": amounts(conclusion.spent),
        "seconds": round(seconds, 1),
    }


def amounts(one: Spent | Allowance) -> dict[str, Any]:
    """tokens, money in millionths, calls; null where nothing limits."""
    return {"tokens": one.tokens, "money": one.money, "calls": one.calls}


def halted(event: events.Halted, seconds: float) -> dict[str, Any]:
    """The team may go on without us: what it comes to is not known here."""
    return {
        "team": event.team.hex(),
        "outcome": "halted",
        "why": event.reason,
        "answer": "This node can follow the team no more. The others may go on; ask one of them how it ended.",
        "files": [],
        "credits": [],
        "seconds": round(seconds, 1),
    }


def failed_launch(event: events.LaunchFailed, seconds: float) -> dict[str, Any]:
    roles = ", ".join(event.missing)
    answers = {
        "nobody-fits": f"Nobody who was found will do: {roles}.",
        "too-few": "Too few members signed the roster.",
    }
    return {
        "team": event.team.hex(),
        "outcome": "failed",
        "why": event.code,
        "answer": answers.get(event.code, event.code),
        "files": [],
        "credits": [],
        "seconds": round(seconds, 1),
    }
