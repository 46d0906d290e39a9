"""What a running node can tell of its own health: named checks, each with its fix."""

import shutil
from typing import Any

from ioa_p2p.node.access import HOW_TO_GET_ONE, Access, why_silent
from ioa_p2p.node.node import Node
from ioa_p2p.wire.ids import node_short

DISK_FREE_BYTES_MIN = 100 * 1024 * 1024


def run(node: Node) -> list[dict[str, Any]]:
    """`name, ok, detail, hint` each; the hint is empty where all is well."""
    free = shutil.disk_usage(node.config.home.data_folder).free
    ready = node.ready.is_set()
    contacts = len(node.dht.contacts)
    joined = "still joining" if not ready else "joined" if contacts else "alone: nobody found yet"
    refusal = f"{node.health}" if node.health else "writes are durable"
    tried = contacts > 1  # it takes a node that we did not write to first
    relays = ", ".join(node_short(relay) for relay in node.relays.serving)
    unreached = f"strangers reach us through {relays}" if relays else "strangers do not reach us"
    reach = "strangers reach us" if node.reachable else unreached if tried or relays else "nobody to tell yet"
    alarm, hint = next(reversed(node.alarms.faults), ("", ""))
    return [
        _check("ready", ready, joined, "wait a little; then see `ioa-p2p peers`"),
        _check("peers", True, f"{contacts} DHT contacts, {len(node.links.peers)} links", ""),
        _seeds(node.access, node.config.mesh, contacts),
        *(_check("source", False, problem, "the other sources go on") for problem in node.access.problems),
        _check("reachable", node.reachable or bool(relays) or not tried, reach,
               "open the UDP and TCP port in the firewall, or have a neighbour that relays; see docs/nat.md"),
        _check("disk", free > DISK_FREE_BYTES_MIN, f"{free // 1024**2} MiB free", "free some space"),
        _check("storage", node.health is None, refusal, "see the disk and the data folder's permissions"),
        _memory(node),
        _check("alarms", not alarm, alarm or "none", hint),
        *(_check(f"agent {name}", False, str(fault), fault.hint) for name, fault in node.agents.failures.items()),
    ]  # fmt: skip


def degraded(node: Node) -> str:
    """In what this node falls short of its word, and what is done about it; empty if in nothing."""
    voteless = sum(not team.asleep and not team.election.may_vote for team in node.teams.teams.values())
    told = [str(node.health)] if node.health else []
    told += [loss.text for loss in node.memory.losses]
    if voteless:
        told.append(f"it has no vote in {voteless} open teams: it forgot what it had promised there")
    if node.storage.damaged:
        told.append("the disk changed rows of the database: they are left out, and sorted out at the next start")
    return "; ".join(told)


def _memory(node: Node) -> dict[str, Any]:
    told = degraded(node) if node.health is None else ""
    hint = next((loss.hint for loss in node.memory.losses), "nothing: what is missing is asked of the others")
    return _check("memory", not told, told or "all of it is there", hint)


def _seeds(access: Access, mesh: str, contacts: int) -> dict[str, Any]:
    """To be the first is no fault; to have seeds of which none answers, and nobody else, is one."""
    known, heard = len(access.seeds.nodes), len(access.seeds.answering)
    if not known and access.seeds.are_us:
        return _check("seeds", True, "this node is one, and knows no other", "")
    if not known:
        first = f": the first node of its mesh waits for others ({HOW_TO_GET_ONE})"
        return _check("seeds", True, f"none known{', and none needed' if contacts else first}", "")
    return _check("seeds", heard > 0 or contacts > 0, f"{heard} of {known} answer", f"{why_silent(mesh)}?")


def _check(name: str, ok: bool, detail: str, hint: str) -> dict[str, Any]:
    return {"name": name, "ok": ok, "detail": detail, "hint": "" if ok else hint}
