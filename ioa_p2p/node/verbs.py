"""What the control socket can ask of a node, one handler a verb. Arguments and answers: docs/control.md.

control client ── verb, args ──> handler(args, emit) ──> reads the node, or commands a machine
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from ioa_p2p.crypto.keys import CHECKS
from ioa_p2p.errors import UsageError
from ioa_p2p.node import checks, telling, tree, verbs_find, verbs_task, verbs_team, verbs_transcript
from ioa_p2p.node.arguments import budget, flag, nodes, seconds, text
from ioa_p2p.node.control import Emit, Handler
from ioa_p2p.node.node import Node
from ioa_p2p.node.story import Story
from ioa_p2p.node.verbs_task import GOAL_S_MAX, find_story, find_task, task_rows
from ioa_p2p.team.commands import CancelTeam
from ioa_p2p.team.team import Team
from ioa_p2p.version import __version__
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import node_text

TIMEOUT_S = 600.0


def handlers(node: Node) -> Mapping[str, Handler]:
    """Verb -> handler, bound to one node."""
    verbs = {
        "status": _status, "id": _id, "peers": _peers, **verbs_find.HANDLERS, **verbs_team.HANDLERS, "ask": _ask,
        "resume": _resume, "teams": _teams, "team": _team, **verbs_task.HANDLERS, "cancel": _cancel,
        "doctor": _doctor, "stop": _stop, "seeds": _seeds, **verbs_transcript.HANDLERS,
    }  # fmt: skip
    return {verb: _bound(node, handle) for verb, handle in verbs.items()}


def _bound(node: Node, handle: Callable[..., Any]) -> Handler:
    async def handler(args: dict[str, Any], emit: Emit) -> dict[str, Any]:
        return await handle(node, args, emit)

    return handler


# -- the node


async def _status(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    states = [team.state for team in node.teams.teams.values()]
    return {
        "node": node_text(node.key.node),
        "name": node.config.name,
        "mesh": node.config.mesh,
        "profile": node.config.profile,
        "pid": os.getpid(),
        "version": __version__,
        "uptime_s": round(time.time() - node.started, 1),
        "ready": node.ready.is_set(),
        "reachable": node.reachable,
        "dht": f"{node.datagrams.endpoint.host}:{node.datagrams.endpoint.port}",
        "addresses": list(node.addresses),
        "relays": [node_text(relay) for relay in node.relays.serving],
        "peers": len(node.links.peers),
        "contacts": len(node.dht.contacts),
        "records": len(node.dht.held),
        "seeds": len(node.access.seeds.nodes),
        "seeds_answering": len(node.access.seeds.answering),
        "agents": sorted(node.agents.cards),
        "agents_failed": {name: str(fault) for name, fault in node.agents.failures.items()},
        "teams_open": sum(story.result is None for story in node.stories.all()),
        "tasks_open": sum(not row.state.final for state in states for row in state.tasks.values()),
        "degraded": checks.degraded(node),
        "letters": len(node.letters.all()),
        "alarms": node.alarms.texts,
        "clock_offset_s": node.dht.clock_offset_s,
        "notes": node.access.notes,
        "counters": counters(node),
    }


def counters(node: Node) -> dict[str, int]:
    """Every count of the node under one flat name each."""
    groups: dict[str, Mapping[str, int]] = {
        "": {"signatures_checked": CHECKS.made, "signatures_bad": CHECKS.bad},
        "switch.": node.switch.faults,
        "udp.": node.datagrams.counters,
        "link.": node.links.counters,
        "seeds.": node.access.counters,
        "dht.": node.dht_driver.faults + node.dht.faults,
        "channel.": node.gossip_driver.faults,
        "team.": node.teams_driver.faults,
    }
    return {prefix + name: count for prefix, group in groups.items() for name, count in sorted(group.items())}


async def _id(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    return {"node": node_text(node.key.node), "mesh": node.config.mesh, "seed": str(node.seed)}


async def _peers(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    peers = [
        {"node": node_text(link.peer), "address": link.address, "outbound": link.outbound,
         "software": link.hello.software, "via": node_text(link.via) if link.via else ""}
        for _, link in sorted(node.neighbourhood.up.items())
    ]  # fmt: skip
    return {"peers": peers, "contacts": len(node.dht.contacts)}


async def _seeds(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    return {"mesh": node.config.mesh, "seeds": node.access.rows(), "notes": node.access.notes}


async def _doctor(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    return {"checks": checks.run(node)}


async def _stop(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    asyncio.get_running_loop().call_later(0.05, node.stopping.set)  # after the answer has left
    return {"stopping": True}


# -- goals and teams


async def _ask(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    goal, detach = text(args, "goal").strip(), flag(args, "detach")
    goal_s = seconds(args, "timeout_s", TIMEOUT_S, GOAL_S_MAX)
    if not goal or len(goal) > limits.GOAL_CHARS_MAX:
        raise UsageError("bad-goal", f"a goal has 1 to {limits.GOAL_CHARS_MAX} characters", "say it shorter")
    key, witnesses = text(args, "key"), nodes(args, "witness", limits.WITNESSES_MAX)
    if len(key) > limits.ASK_KEY_CHARS_MAX:
        raise UsageError("bad-key", f"a key has at most {limits.ASK_KEY_CHARS_MAX} characters", "make it shorter")
    story = node.goals.known(goal, key) or node.ask(goal, goal_s, budget(args, "budget"), key, witnesses)
    return await (story.founded(emit) if detach else story.follow(emit))


async def _resume(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    return await find_story(node, text(args, "team")).follow(emit)


async def _teams(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    return {"teams": [_summary(node, story) for story in reversed(node.stories.all())]}


async def _team(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    story = find_story(node, text(args, "team"))
    team = node.teams.teams.get(story.team)
    members = [telling.member(one) for one in team.state.roster.members] if team else []
    chat = [{"who": event["who"], "text": event["text"]} for event in story.events if event["kind"] == "said"]
    tasks = task_rows(story.team, team, story)
    gaps = [telling.gap_row(gap) for gap in node.gossip.gaps(story.team)]
    notes = [event["text"] for event in story.events if event["kind"] in telling.NOTES]
    told = {"members": members, "tasks": tasks, "chat": chat, "gaps": gaps, "notes": notes, "result": story.result,
            "children": tree.children(node.teams.teams, team)}  # fmt: skip
    return {**_summary(node, story), **told}


async def _cancel(node: Node, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
    if wanted := text(args, "task"):
        team, task = find_task(node, wanted)
        node.teams_driver.command(CancelTeam(team.team, (task,)))
        return {"cancelled": task.hex()}
    team = text(args, "team")
    if args.get("team") == "":  # a script's empty variable is no wish to end the newest
        raise UsageError("no-team", "an empty name names no team", "name a team or a task")
    story = find_story(node, team)
    if story.current in node.teams.teams:
        node.teams_driver.command(CancelTeam(story.current))
    else:
        node.give_up(story, "cancelled")
    return {"cancelled": story.team.hex()}


# -- reading teams


def _live(node: Node, story: Story) -> Team | None:
    return node.teams.teams.get(story.team)


def _summary(node: Node, story: Story) -> dict[str, Any]:
    team = _live(node, story)
    state = team.state if team else None
    coordinator = team.coordinator if team else None
    return {
        "team": story.team.hex(),
        "goal": story.goal,
        "parent": tree.parent(team),
        "phase": telling.phase_name(state.phase) if state else "" if story.result else "FORMING",
        "incarnation": team.election.incarnation if team else 0,
        "term": team.election.term if team else 0,
        "coordinator": node_text(coordinator) if coordinator else "",
        "decided_term": state.term if state else 0,
        "decided_index": state.index if state else 0,
        "tasks_open": sum(not row.state.final for row in state.tasks.values()) if state else 0,
        "outcome": story.result["outcome"] if story.result else "",
        "started": round(story.started, 1),
        "budget": telling.amounts(state.roster.caps.budget) if state else {},
        "cost": telling.amounts(state.budget.spent) if state else {},
        "cost_untold": telling.amounts(state.budget.lost) if state else {},
        "cost_beyond": telling.amounts(state.budget.over) if state else {},
    }
