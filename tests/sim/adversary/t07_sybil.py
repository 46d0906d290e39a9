"""T07: 40 ids made to be the closest to an index key. Is a real agent under that key still found?

    40 Sybils nearer to the key than all honest nodes, in 3 subnets or in 300 ── name each other, keep nothing,
    answer with false providers        an agent published by its node ── a reader ── all pointers under the key ──> in?

They stand in all honest tables that have a place for them. The agent that is allow-listed is found another way: its
record under its own key, where nobody sits, and then at its own endpoint.
"""

import itertools
import random
from typing import Any

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands, space
from ioa_p2p.dht.records import item_of
from ioa_p2p.wire import dht as wire
from ioa_p2p.wire import ids
from ioa_p2p.wire.dht import Contact, pack_contact
from tests.dht.frames import sealed
from tests.dht.mesh import card, node_key
from tests.sim.crowd import WALL_S, Crowd, public_host
from tests.sim.liar import Liar, Search, Told
from tests.wire.samples import pointer

BARS = {"sybil_3_subnets": ">= 0.99", "sybil_300_subnets": ">= 0.9", "sybil_300_allowed": "== 1"}
SYBILS = 40
FALSE_PER_ANSWER = 5  # false providers in one answer, as many as fit one datagram
FIRST_SUBNET = 40_000  # numbers of `public_host` that no honest node has


class Sybil(Liar):
    """One of 40 at a key: names the others, and providers that do not exist."""

    def __init__(self, others: list[Contact], false: list[bytes], dice: random.Random) -> None:
        self._others = others
        self._false = false
        self._dice = dice

    def answer(self, search: Search) -> Told | None:
        if isinstance(search, wire.FindRecord):
            return None
        named = tuple(pack_contact(one) for one in self._dice.sample(self._others, 12))
        false = () if isinstance(search, wire.FindNode) else self._dice.sample(self._false, FALSE_PER_ANSWER)
        return tuple(false), named


class Siege:
    """A crowd in which each of `texts`, index keys, has Sybils closest to it, spread over `subnets`."""

    def __init__(self, seed: int, size: int, texts: list[str], subnets: int) -> None:
        self.dice = random.Random(f"siege {seed}")
        honest = [space.position(node_key(number).node) for number in range(size)]
        self._sybils: dict[Contact, Sybil] = {}
        hosts = (public_host(FIRST_SUBNET + number % subnets) for number in itertools.count())
        for text in texts:
            self._besiege(text, honest, hosts)
        self.crowd = Crowd(seed, size, liars=self._sybils.get, known=self._sybils)

    def _besiege(self, text: str, honest: list[int], hosts: Any) -> None:
        key = ids.pointer_key(ids.index_key(text), 0, b"")
        nearest = min(place ^ space.at(key) for place in honest)
        made = (self.dice.randbytes(32) for _ in itertools.count())
        close = (node for node in made if space.position.__wrapped__(node) ^ space.at(key) < nearest)
        contacts = [Contact(node, next(hosts), 4_001) for node in itertools.islice(close, SYBILS)]
        false = [self._false_provider(text, number) for number in range(2 * SYBILS)]
        self._sybils |= {contact: Sybil(contacts, false, self.dice) for contact in contacts}

    def _false_provider(self, text: str, number: int) -> bytes:
        key = NodeKey(ids.blake(f"false {text} {number}".encode()))
        return sealed(pointer(key, index=ids.index_key(text), issued=int(WALL_S), ttl=7_200), key)


def run(short: bool) -> dict[str, float]:
    size, crowds, keys = (400, 2, 3) if short else (1_000, 30, 4)
    few, _ = trials(range(crowds), size, keys, subnets=3)
    many, allowed = trials(range(crowds), size, keys, subnets=300)
    return {"sybil_3_subnets": few, "sybil_300_subnets": many, "sybil_300_allowed": allowed}


def trials(seeds: range, size: int, keys: int, subnets: int) -> tuple[float, float]:
    """Share of agents found under the besieged key, and of those found at their own node."""
    found: list[bool] = []
    allowed: list[bool] = []
    for seed in seeds:
        texts = [f"skill:wanted-{seed}-{number}" for number in range(keys)]
        siege = Siege(seed, size, texts, subnets)
        for text in texts:
            owner, reader = siege.dice.sample(siege.crowd.contacts, 2)
            name = text.removeprefix("skill:")
            siege.crowd.command(owner, commands.Publish(card("real", name), endpoint=f"{owner.host}:{owner.port}"))
            siege.crowd.run(10)
            asked = siege.crowd.ask(reader, lambda request, text=text: commands.SearchPointers(request, text))
            found.append(owner.key in [one.node for one in asked.pointers])
            allowed.append(at_its_node(siege.crowd, reader, owner.key, text))
    return sum(found) / len(found), sum(allowed) / len(allowed)


def at_its_node(crowd: Crowd, reader: Contact, node: bytes, text: str) -> bool:
    """The record by the node's key and its agent's name, then its pointer under `text` from its own endpoint."""
    record = crowd.ask(reader, lambda request: commands.SearchRecord(request, node, "real")).record
    if record is None:
        return False
    host, _, port = record.endpoint.rpartition(":")
    key = ids.pointer_key(ids.index_key(text), 0, b"")
    there = crowd.node(Contact(node, host, int(port)))
    answers = there.handle_message(crowd.now, reader, wire.FindPointers(1, False, key))
    found = next(effect.message for effect in answers if isinstance(effect.message, wire.Found))
    return [item_of(raw).body.node for raw in found.frames] == [node]
