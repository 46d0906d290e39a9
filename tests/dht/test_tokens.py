"""Tokens prove an address: this key, this endpoint, of late."""

import random

import pytest

from ioa_p2p.dht.tokens import Tokens
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from tests.dht.frames import NOW, later

PEER = Contact(bytes(range(32)), "127.0.0.1", 4001)


@pytest.fixture
def tokens() -> Tokens:
    return Tokens(random.Random(1))


def test_a_token_holds_for_whom_it_was_given(tokens: Tokens):
    assert tokens.holds(NOW, PEER, tokens.give(NOW, PEER))


@pytest.mark.parametrize(
    "other", [PEER._replace(key=bytes(32)), PEER._replace(host="127.0.0.2"), PEER._replace(port=1)]
)
def test_it_holds_for_no_other_key_or_endpoint(tokens: Tokens, other: Contact):
    assert not tokens.holds(NOW, other, tokens.give(NOW, PEER))


def test_it_holds_over_one_change_of_secret_and_not_over_two(tokens: Tokens):
    token = tokens.give(NOW, PEER)
    assert tokens.holds(later(limits.DHT_TOKEN_S), PEER, token)
    assert not tokens.holds(later(2 * limits.DHT_TOKEN_S), PEER, token)


def test_another_node_gives_another_token(tokens: Tokens):
    assert tokens.give(NOW, PEER) != Tokens(random.Random(2)).give(NOW, PEER)
