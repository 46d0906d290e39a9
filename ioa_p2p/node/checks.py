"""What a running node can tell of its own health: named checks, each with its fix."""

import shutil
from typing import Any

from ioa_p2p.node.access import HOW_TO_GET_ONE
from ioa_p2p.node.node import Node
from ioa_p2p.wire.ids import node_short

DISK_FREE_BYTES_MIN = 100 * 1024 * 1024


def run(node: Node) -> list[dict[str, Any]]:
    """`name, ok, detail, hint` each; the hint is empty where all is well."""
    free = shutil.disk_usage(node.config.home.data_folder).free
    ready = node.ready.is_set()
    contacts = len(node.dht.contacts)
    seeds, heard = len(node.access.seeds.known), len(node.dht.seeds_heard)
    refusal = f"{node.health}" if node.health else "writes are durable"
    tried = contacts > 1  # it takes a node that we did not write to first
    relays = ", ".join(node_short(relay) for relay in node.relays.serving)
    unreached = f"strangers reach us through {relays}" if relays else "strangers do not reach us"
    reach = "strangers reach us" if node.reachable else unreached if tried or relays else "nobody to tell yet"
    alarm, hint = next(reversed(node.alarms.faults), ("", ""))
    return [
        _check("ready", ready, "joined" if ready else "still joining", "wait a little; then see `peers`"),
        _check("peers", True, f"{contacts} DHT contacts, {len(node.links.peers)} links", ""),
        _seeds(seeds, heard, contacts),
        *(_check("source", False, problem, "the other sources go on") for problem in node.access.problems),
        _check("reachable", node.reachable or bool(relays) or not tried, reach,
               "open the UDP and TCP port in the firewall, or have a neighbour that relays; see docs/nat.md"),
        _check("disk", free > DISK_FREE_BYTES_MIN, f"{free // 1024**2} MiB free", "free some space"),
        _check("storage", node.health is None, refusal, "see the disk and the data folder's permissions"),
        _check("alarms", not alarm, alarm or "none", hint),
        *(_check(f"agent {name}", False, str(fault), fault.hint) for name, fault in node.agents.failures.items()),
    ]  # fmt: skip


def _seeds(known: int, heard: int, contacts: int) -> dict[str, Any]:
    """To be the first is no fault; to have seeds of which none answers, and nobody else, is one."""
    if not known and not contacts:
        return _check("seeds", True, f"none known: the first node of its mesh waits for others ({HOW_TO_GET_ONE})", "")
    hint = (
        "is a seed up, its UDP port open, and its line still what `ioa-p2p id` prints there? See `ioa-p2p seeds list`"
    )
    return _check("seeds", heard > 0 or contacts > 0, f"{heard} of {known} answer", hint)


def _check(name: str, ok: bool, detail: str, hint: str) -> dict[str, Any]:
    return {"name": name, "ok": ok, "detail": detail, "hint": "" if ok else hint}
