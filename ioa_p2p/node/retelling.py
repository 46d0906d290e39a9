"""What a verified entry or line of a transcript tells: plain JSON objects as those of a team at work, with where they
stand. docs/transcripts.md, "What replay tells".

Audited ──> {"kind", "index", "at", ...}, one for each change        chat Entry ──> {"kind": "chat" | "signed", ...}
"""

from collections.abc import Iterator
from typing import Any

from ioa_p2p.node import telling
from ioa_p2p.team.audit import Audited, LogAudit
from ioa_p2p.team.state import (
    Change,
    Checked,
    Ended,
    LineHeard,
    PhaseMoved,
    Refused,
    RosterMoved,
    TaskMoved,
    TaskRow,
    TurnGiven,
)
from ioa_p2p.wire import frames, gossip
from ioa_p2p.wire.ids import node_text
from ioa_p2p.wire.step import Admit, Await, Conclude, Promote, Remove, Spend, Step
from ioa_p2p.wire.transcript import Absent, Start

Event = dict[str, Any]


def started(start: Start) -> Event:
    network, team, node = start.network.hex(), start.team.hex(), node_text(start.node)
    return {"kind": "transcript", "network": network, "team": team, "node": node, "at": start.at}


def founded(log: LogAudit) -> Event:
    roster = log.state.roster
    return {
        "kind": "roster",
        "index": 0,
        "at": log.founding.at,
        "team": roster.team.hex(),
        "goal": roster.goal,
        "launcher": node_text(roster.launcher),
        "deadline": roster.deadline,
        "budget": telling.amounts(roster.caps.budget),
        "members": [telling.member(one) for one in roster.members],
    }


def decided(audited: Audited, log: LogAudit) -> Iterator[Event]:
    """In the order in which they came about."""
    where = {"index": audited.entry.index, "at": audited.entry.at}
    if audited.changes is None:
        yield {"kind": "earlier", **where, "node": node_text(audited.entry.node), "step": _name(audited.step),
               "text": getattr(audited.step, "text", "")}  # fmt: skip
        return
    if audited.entry.certificate:
        by = [node_text(frames.parse(vote).signer) for vote in audited.entry.certificate]
        coordinator = node_text(audited.entry.node)
        yield {"kind": "elected", **where, "term": audited.entry.term, "coordinator": coordinator,
               "votes": len(by), "voters": log.voters, "by": by}  # fmt: skip
    for change in audited.changes:
        yield from ({**event, **where} for event in _changed(change, log))
    match audited.step:
        case Await(tasks, mode, deadline):
            waits = [task.hex() for task in tasks]
            yield {"kind": "waits", **where, "tasks": waits, "mode": mode, "deadline": deadline}
        case Spend(spent):
            yield {"kind": "spent", **where, "cost": telling.amounts(spent)}
        case _:
            pass


def _changed(change: Change, log: LogAudit) -> Iterator[Event]:
    match change:
        case PhaseMoved(_, after):
            yield {"kind": "phase", "phase": telling.phase_name(after)}
        case TurnGiven(turn, discuss):
            node = node_text(discuss.node)
            yield {"kind": "asked", "turn": turn, "who": discuss.agent, "node": node, "text": discuss.prompt}
        case LineHeard(line):
            node = node_text(line.node)
            yield {"kind": "said", "turn": line.turn, "who": line.agent, "node": node, "text": line.text}
        case TaskMoved(row):
            yield _task(row)
        case Ended(conclusion):
            yield _concluded(conclusion, log)
        case RosterMoved():
            yield _moved(change)
        case Checked(checkpoint):
            yield {"kind": "checkpoint", "up_to": checkpoint.index, "state": checkpoint.state.hex()}
        case Refused(code):
            yield {"kind": "refused", "code": code}


def _task(row: TaskRow) -> Event:
    outcome = row.outcome
    files = [{"name": one.name, "bytes": one.size, "hash": one.hash.hex()} for one in outcome.blobs] if outcome else []
    spent = telling.amounts(outcome.spent) if outcome and outcome.spent else {}
    return {
        "kind": "task",
        **telling.spec(row.spec),
        "goal": row.spec.goal,
        "state": row.state.value,
        "note": row.reason,
        "summary": outcome.summary if outcome else "",
        "files": files,
        "cost": spent,
    }


def _moved(moved: RosterMoved) -> Event:
    how = {Admit: "admitted", Promote: "promoted", Remove: "removed"}[type(moved.step)]
    counts_to = moved.step.cut if isinstance(moved.step, Remove) else None
    agents = [member.agent for member in moved.members]
    return {"kind": "member", "how": how, "node": node_text(moved.node), "agents": agents, "counts_to": counts_to}


def restored(log: LogAudit) -> Event:
    """The state that stands for decisions that are missing."""
    state = log.state
    return {
        "kind": "restored",
        "index": state.index,
        "at": state.at,
        "phase": telling.phase_name(state.phase),
        "members": [telling.member(one) for one in state.roster.members],
        "tasks": [{**telling.spec(row.spec), "state": row.state.value} for row in state.tasks.values()],
        "cost": telling.amounts(state.budget.spent),
    }


def _name(step: Step) -> str:
    return type(step).__name__.lower()


def _concluded(conclusion: Conclude, log: LogAudit) -> Event:
    told = telling.result(log.state.roster.team, conclusion, [], log.state.at - log.state.roster.created)
    rest = {name: value for name, value in told.items() if name not in ("team", "files")}
    return {"kind": "concluded", **rest}


def line(entry: gossip.Entry, kind: str) -> Event:
    """kind: "signed" if the line was decided before in these words, else "chat"."""
    text = entry.body.decode(errors="replace") if entry.kind == "text" else f"({entry.kind}, {len(entry.body)} bytes)"
    return {"kind": kind, "node": node_text(entry.node), "seq": entry.seq, "at": entry.at, "text": text}


def forked(author: bytes, end: int) -> Event:
    return {"kind": "forked", "node": node_text(author), "counts_to": end}


def absent(record: Absent) -> Event:
    name = node_text(record.name) if record.what == "lines" else record.name.hex()
    return {"kind": "absent", "what": record.what, "name": name, "first": record.first, "last": record.last}
