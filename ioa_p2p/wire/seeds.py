"""The seed list: whom to ask first, signed by somebody the node's owner chose to trust. docs/wire.md, "Seed lists".

SeedList ── crypto.envelope.seal(Kind.SEEDS) ──> frame ── hex text ──> a file, which travels apart from the program
"""

from typing import Annotated

from msgspec import Meta

from ioa_p2p.wire import limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.records import VISIBLE, NodeKey, Sequence, Wall

SeedText = Annotated[str, Meta(pattern=VISIBLE, min_length=1, max_length=limits.SEED_TEXT_BYTES_MAX)]


class SeedList(Message, frozen=True):
    """node: who signs. number: a list with a lower one is no longer good. Its mesh is in what the signature covers.

    issued, expires: wall seconds. seeds: `key@host:port` each, the best first.
    """

    node: NodeKey
    number: Sequence
    issued: Wall
    expires: Wall
    seeds: Annotated[tuple[SeedText, ...], Meta(min_length=1, max_length=limits.SEED_LIST_MAX)]
