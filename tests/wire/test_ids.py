"""Names of things: forms accepted, forms refused, and hashes bound to what they name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.errors import UsageError
from ioa_p2p.wire import ids
from tests.wire.samples import ALICE, BOB

nodes = st.binary(min_size=32, max_size=32)


@given(nodes)
def test_a_node_id_survives_being_typed(node: bytes) -> None:
    text = ids.node_text(node)
    assert len(text) == 52
    assert ids.node_from_text(text) == ids.node_from_text(f" {text.upper()}\n") == node


@given(st.text(max_size=60))
def test_any_other_text_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError, match="not a node id") as caught:
        ids.node_from_text(text)
    assert (caught.value.code, bool(caught.value.hint)) == ("bad-node-id", True)


def test_two_texts_never_name_one_node() -> None:
    """The last base32 character carries four spare bits; only zeros are accepted there."""
    text = ids.node_text(bytes(32))
    with pytest.raises(UsageError):
        ids.node_from_text(text[:-1] + "b")


@pytest.mark.parametrize("name", ["a", "stats.outliers", "a/b-c.d/e/f", "x" * 64])
def test_a_canonical_skill_name_is_accepted(name: str) -> None:
    assert ids.is_skill_name(name)


@pytest.mark.parametrize("name", ["", "A", "a..b", ".a", "a.", "a b", "ä", "a.b.c.d.e.f.g", "x" * 65, "a\n", "a_b"])
def test_another_skill_name_is_refused(name: str) -> None:
    assert not ids.is_skill_name(name)


@pytest.mark.parametrize(
    ("name", "good"), [("device-1", True), ("a-", False), ("a.b", False), ("x" * 33, False), ("a\n", False)]
)
def test_an_agent_name_is_words_joined_by_dashes(name: str, good: bool) -> None:
    assert ids.is_agent_name(name) is good


def test_a_record_key_depends_on_node_and_agent() -> None:
    keys = {ids.record_key(node, agent) for node in (ALICE.node, BOB.node) for agent in ("a", "b")}
    assert {len(key) for key in keys} == {20}
    assert len(keys) == 4


def test_pointers_of_all_publishers_meet_at_depth_zero() -> None:
    index = ids.index_key("skill:stats.outliers")
    assert ids.pointer_key(index, 0, bytes(20)) == ids.pointer_key(index, 0, b"\xff" * 20)


@given(st.integers(1, 8), st.binary(min_size=20, max_size=20), st.binary(min_size=20, max_size=20))
def test_a_shard_is_chosen_by_the_first_bits_of_the_publisher(depth: int, one: bytes, other: bytes) -> None:
    index = ids.index_key("word:memory")
    same_shard = one[0] >> (8 - depth) == other[0] >> (8 - depth)
    assert (ids.pointer_key(index, depth, one) == ids.pointer_key(index, depth, other)) is same_shard
    assert ids.pointer_key(index, depth, one) != ids.pointer_key(index, 0, one)


def test_meshes_of_different_names_have_different_networks() -> None:
    assert len(ids.network_id("home")) == 16
    assert ids.network_id("home") != ids.network_id("work")
