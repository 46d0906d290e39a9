"""Planted faults of the DHT: each is one plausible mistake, and must be caught by the rules beside it."""

from typing import Any

import pytest

from ioa_p2p.dht import join, keeper, machine, publisher, records, store, tokens
from ioa_p2p.dht.records import Claim, Gate
from ioa_p2p.effects import Effect, Now, Save
from ioa_p2p.wire.dht import Verdict
from tests.sim.scenario import Mutant


def never_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store, "keep_until", lambda now, item: now.boot + 1e9)


def put_again_extends(patch: pytest.MonkeyPatch) -> None:
    """Every put, of known bytes too, counts its ttl from now on."""

    def put(self: store.Store, now: Now, item: store.Item, source: bytes) -> Verdict:
        held = self._slots.get(item.slot)
        if held is not None and held.item.hash == item.hash:
            self._take_out(held)
        return sound(self, now, item, source)

    def admit(
        self: records.Gate, now: Now, claim: records.Claim, source: bytes, sender: bytes | None = None
    ) -> Verdict:
        return self._store.put(now, records.item_of(claim.frame.raw), source)

    sound = store.Store.put
    patch.setattr(store, "keep_until", lambda now, item: now.boot + item.body.ttl)
    patch.setattr(store.Store, "put", put)
    patch.setattr(Gate, "admit", admit)


def older_replaces_newer(patch: pytest.MonkeyPatch) -> None:
    def admit(
        self: records.Gate, now: Now, claim: records.Claim, source: bytes, sender: bytes | None = None
    ) -> Verdict:
        return self._store.put(now, self._prove(now, claim), source)

    patch.setattr(store.Store, "_replaces", lambda self, new, old: True)
    patch.setattr(Gate, "admit", admit)


def signer_not_checked(patch: pytest.MonkeyPatch) -> None:
    """Receivers believe every signature; the world's own check is not theirs."""
    patch.setattr(Gate, "_prove", _unproven)


def _unproven(self: Any, now: Now, claim: Claim) -> store.Item:
    records.check_window(now, claim.head)
    return records.item_of(claim.frame.raw)


def token_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tokens.Tokens, "holds", lambda self, now, of, token: True)


def no_quota(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store.Store, "_has_room", lambda self, item, source, replaced: True)


def seq_not_saved(patch: pytest.MonkeyPatch) -> None:
    sound = machine.DhtMachine._effects

    def effects(self: machine.DhtMachine) -> list[Effect]:
        return [effect for effect in sound(self) if not (isinstance(effect, Save) and effect.space == publisher.SPACE)]

    patch.setattr(machine.DhtMachine, "_effects", effects)


def gives_up_on_seeds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(join.Joining, "_try_later", lambda self, seed, now, wait_s: None)


def forgets_peers(patch: pytest.MonkeyPatch) -> None:
    """Nothing of the table is written down."""
    patch.setattr(machine.Peers, "save", lambda self: None)


def publishes_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publisher.Publisher, "_reissue", lambda self, agent, issue, now: None)


def never_hands_on(patch: pytest.MonkeyPatch) -> None:
    """Holders keep what they have, and give it to nobody."""
    patch.setattr(keeper.Keeper, "check", lambda self, now: None)
    patch.setattr(keeper.Keeper, "entered", lambda self, now, contact: None)


MUTANTS = (
    Mutant("never-expires", never_expires, frozenset({"D1"})),
    Mutant("put-again-extends", put_again_extends, frozenset({"D1"})),
    Mutant("older-replaces-newer", older_replaces_newer, frozenset({"D2"})),
    Mutant("signer-not-checked", signer_not_checked, frozenset({"D3"})),
    Mutant("token-not-checked", token_not_checked, frozenset({"D6"})),
    Mutant("no-quota", no_quota, frozenset({"D5"})),
    Mutant("seq-not-saved", seq_not_saved, frozenset({"D4"})),
    Mutant("gives-up-on-seeds", gives_up_on_seeds, frozenset({"D7"})),
    Mutant("forgets-peers", forgets_peers, frozenset({"D7"})),
    Mutant("publishes-once", publishes_once, frozenset({"D7"})),
    Mutant("never-hands-on", never_hands_on, frozenset({"D7"})),
)
