"""What crosses a link: `length u32be | kind u8 | body`, at most 128 KiB. docs/wire.md, "Link".

length counts kind and body. The first frame each way is HELLO; PING is answered by PONG with the same body.
"""

from enum import IntEnum
from typing import Annotated

from msgspec import Meta

from ioa_p2p.wire import limits
from ioa_p2p.wire.codec import Message
from ioa_p2p.wire.records import Addresses, EndpointText, Features, Sequence

PROTOCOL = "/ioa/link/1"
VERSION = 1


class LinkKind(IntEnum):
    """Bodies of HELLO..PONG are the link's own; the others are unions named in the file beside each."""

    HELLO = 1
    PING = 2
    PONG = 3
    DATAGRAM = 4  # a boxed DHT datagram for a node that UDP cannot reach
    SIGNED = 5  # whole signed frames, one after another
    CHANNEL = 6  # wire/gossip.py: frontier, wants, digests
    DECISION = 7  # wire/decision.py: the decision log and its election
    TEAM = 8  # wire/team.py: forming, task reports, commands
    DIRECTORY = 9  # wire/dht.py: record digests between neighbours, cards by hash
    BLOB = 10  # wire/gossip.py: pieces of blobs, sent when nothing else waits


class Hello(Message, frozen=True):
    """First frame: version of the link protocol, mesh, boot id (unix ms), software, features.

    A peer of another `version` major or another `network` is refused by name.
    """

    version: Annotated[int, Meta(ge=0, le=255)]
    network: Annotated[bytes, Meta(min_length=limits.NETWORK_ID_BYTES, max_length=limits.NETWORK_ID_BYTES)]
    boot: Sequence
    software: Annotated[str, Meta(pattern=r"\A[ -~]*\Z", max_length=limits.LINK_SOFTWARE_BYTES_MAX)] = ""
    features: Features = ()
    addresses: Addresses = ()
    endpoint: EndpointText = ""
    certificate: Annotated[bytes, Meta(max_length=limits.LINK_CERTIFICATE_BYTES_MAX)] = b""
