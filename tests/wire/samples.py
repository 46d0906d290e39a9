"""Valid wire values for tests: fixed samples, and Hypothesis strategies that cover the bounds."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.records import AgentRecord, Card, Pointer, Skill

ALICE, BOB, MALLORY = (NodeKey(bytes([number]) * 32) for number in (1, 2, 3))
NETWORK = ids.network_id("test-mesh")
OTHER_NETWORK = ids.network_id("other-mesh")


def record(key: NodeKey = ALICE, **changes: object) -> AgentRecord:
    fields = {
        "node": key.node,
        "agent": "analyst",
        "seq": 1_800_000_000_123,
        "issued": 1_800_000_000,
        "ttl": limits.TTL_S_DEFAULT,
        "gone": False,
        "boot": 1_799_999_999_000,
        "addresses": ("/ip4/127.0.0.1/tcp/4001",),
        "endpoint": "127.0.0.1:4001",
        "skills": ("stats.outliers", "stats.trend"),
        "features": ("relay",),
        "index_model": "",
        "card": ids.blake(b"card"),
    }
    return AgentRecord(**{**fields, **changes})


def pointer(key: NodeKey = ALICE, **changes: object) -> Pointer:
    fields = {
        "node": key.node,
        "agent": "analyst",
        "seq": 1_800_000_000_123,
        "issued": 1_800_000_000,
        "ttl": limits.TTL_S_DEFAULT,
        "index": ids.index_key("skill:stats.outliers"),
        "depth": 0,
        "sketch": b"",
        "endpoint": bytes([127, 0, 0, 1]) + (4001).to_bytes(2, "big"),
    }
    return Pointer(**{**fields, **changes})


def card() -> Card:
    skill = Skill("stats.outliers", "Finds what is unusual.", inputs=("metrics.samples*",), outputs=("stats.outliers",))
    return Card("analyst", "Statistics of device samples.", skills=(skill,))


def fault_of(call: Callable[..., Any], *arguments: Any) -> str | None:
    """The code of the PeerError that the call raises, or None. Any other exception passes through."""
    try:
        call(*arguments)
    except PeerError as fault:
        return fault.code
    return None


def mutations(good: bytes) -> st.SearchStrategy[bytes]:
    """`good` with one to four bytes overwritten, or a piece cut out, or a piece put in."""
    place = st.integers(0, len(good))
    overwrite = st.lists(st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)), min_size=1, max_size=4)
    return st.one_of(
        overwrite.map(lambda changes: bytes({**dict(enumerate(good)), **dict(changes)}.values())),
        st.tuples(place, place).map(lambda cut: good[: min(cut)] + good[max(cut) :]),
        st.tuples(place, st.binary(max_size=20)).map(lambda put: good[: put[0]] + put[1] + good[put[0] :]),
    )


agent_names = st.from_regex(ids.AGENT_PATTERN).filter(ids.is_agent_name)
skill_names = st.from_regex(ids.SKILL_PATTERN).filter(ids.is_skill_name)
visible = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
heads = {
    "node": st.binary(min_size=32, max_size=32),
    "agent": agent_names,
    "seq": st.integers(0, (1 << 63) - 1),
    "issued": st.integers(0, (1 << 40) - 1),
    "ttl": st.integers(limits.TTL_S_MIN, limits.TTL_S_MAX),
}
records = st.builds(
    AgentRecord,
    **heads,
    gone=st.booleans(),
    boot=st.integers(0, (1 << 63) - 1),
    addresses=st.lists(st.text(visible, max_size=limits.ADDRESS_BYTES_MAX), max_size=4).map(tuple),
    endpoint=st.text(visible, max_size=64),
    skills=st.lists(skill_names, max_size=limits.RECORD_SKILLS_MAX).map(tuple),
    features=st.lists(st.text(visible, max_size=24), max_size=limits.FEATURES_MAX).map(tuple),
    index_model=st.text(visible, max_size=32),
    card=st.binary(min_size=32, max_size=32),
    owner_cert=st.binary(max_size=limits.OWNER_CERT_BYTES_MAX),
)
pointers = st.builds(
    Pointer,
    **heads,
    index=st.binary(min_size=16, max_size=16),
    depth=st.integers(0, 8),
    sketch=st.binary(max_size=64),
    endpoint=st.sampled_from([b"", bytes(6), bytes(18)]),
)
