"""What an agent publishes: AgentRecord, Pointer, and the Card behind the record's hash.

docs/wire.md, "Records". Bounds: wire/limits.py. Texts of a card are untrusted.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.codec import Message, check_nesting

NodeKey = Annotated[bytes, Meta(min_length=32, max_length=32)]
Hash = Annotated[bytes, Meta(min_length=32, max_length=32)]
AgentName = Annotated[str, Meta(pattern=ids.AGENT_PATTERN, max_length=limits.AGENT_NAME_BYTES_MAX)]
SkillName = Annotated[str, Meta(pattern=ids.SKILL_PATTERN, max_length=limits.SKILL_NAME_BYTES_MAX)]

# Visible ASCII alone: what a stranger writes here is shown on terminals and compared as bytes.
VISIBLE = r"\A[!-~]*\Z"
Address = Annotated[str, Meta(pattern=VISIBLE, max_length=limits.ADDRESS_BYTES_MAX)]
Addresses = Annotated[tuple[Address, ...], Meta(max_length=limits.RECORD_ADDRESSES_MAX)]
EndpointText = Annotated[str, Meta(pattern=VISIBLE, max_length=limits.ENDPOINT_TEXT_BYTES_MAX)]
Feature = Annotated[str, Meta(pattern=VISIBLE, max_length=limits.FEATURE_BYTES_MAX)]
Features = Annotated[tuple[Feature, ...], Meta(max_length=limits.FEATURES_MAX)]
Sequence = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Wall = Annotated[int, Meta(ge=0, le=(1 << 40) - 1)]
Ttl = Annotated[int, Meta(ge=limits.TTL_S_MIN, le=limits.TTL_S_MAX + limits.GONE_EXTRA_TTL_S)]

EFFECTS = ("pure", "idempotent", "once")
EffectClass = Literal["pure", "idempotent", "once"]


class RecordHead(Message, frozen=True):
    """The common first fields of AgentRecord and Pointer, read before the signature is checked."""

    node: NodeKey
    agent: AgentName
    seq: Sequence
    issued: Wall
    ttl: Ttl


class AgentRecord(RecordHead, frozen=True):
    """One per agent; DHT key = `ids.record_key(node, agent)`.

    seq: newest wins, never read as time. issued: wall seconds. ttl: seconds.
    addresses: multiaddr texts where the node's link listens. endpoint: `ip:port` of its DHT.
    card: BLAKE2b-256 of the encoded Card. boot: the start's boot id (unix ms): an older one heard
    after a newer one is a clone alarm.
    """

    gone: bool
    boot: Sequence
    addresses: Addresses
    endpoint: EndpointText
    skills: Annotated[tuple[SkillName, ...], Meta(max_length=limits.RECORD_SKILLS_MAX)]
    features: Features
    index_model: Annotated[str, Meta(pattern=VISIBLE, max_length=limits.INDEX_MODEL_BYTES_MAX)]
    card: Hash
    owner_cert: Annotated[bytes, Meta(max_length=limits.OWNER_CERT_BYTES_MAX)] = b""


class Pointer(RecordHead, frozen=True):
    """One per agent and index key; DHT key = `ids.pointer_key(index, depth, dht_id(node))`.

    seq: the *minimum* record seq it speaks of. index: 16 B of `ids.index_key`. depth: shard bits.
    sketch: of the description (wire.sketch), 64 B or empty. endpoint: packed IP and port, 6 or 18 B.
    """

    index: Annotated[bytes, Meta(min_length=16, max_length=16)]
    depth: Annotated[int, Meta(ge=0, le=limits.SHARD_BITS_MAX)]
    sketch: Annotated[bytes, Meta(max_length=limits.SKETCH_BYTES)]
    endpoint: Annotated[bytes, Meta(max_length=limits.ENDPOINT_BYTES_MAX)]


Text = Annotated[str, Meta(max_length=2_000)]
Word = Annotated[str, Meta(max_length=64)]


class Skill(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing an agent can do. `inputs` and `outputs` are type names ("metrics.samples"); a skill with
    no inputs needs only the goal text. An input marked `many` ("metrics.samples*") takes all there are.

    effect: pure = run again freely; idempotent = same key, same effect; once = never repeated by itself.
    """

    name: SkillName
    description: Text = ""
    inputs: Annotated[tuple[Word, ...], Meta(max_length=16)] = ()
    outputs: Annotated[tuple[Word, ...], Meta(max_length=16)] = ()
    tags: Annotated[tuple[Word, ...], Meta(max_length=16)] = ()
    examples: Annotated[tuple[Text, ...], Meta(max_length=8)] = ()
    effect: EffectClass = "pure"
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] = {}

    def __post_init__(self) -> None:
        check_nesting((self.input_schema, self.output_schema))


class Card(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent says of itself, <= 16 KiB encoded, fetched by hash. Field names follow A2A's AgentCard."""

    name: AgentName
    description: Text = ""
    version: Word = "1"
    skills: Annotated[tuple[Skill, ...], Meta(max_length=limits.CARD_SKILLS_MAX)] = ()
