"""Where things are: positions and distances in the 160-bit space, subnets and scopes of addresses.

Kademlia paper, 2: the distance of two ids is their XOR read as a number.
"""

import ipaddress
from enum import IntEnum
from functools import lru_cache

from ioa_p2p.wire import ids, limits

ID_BITS = 160


class Scope(IntEnum):
    """From where an address can be reached; a wider one has the larger value."""

    LOOPBACK = 0
    PRIVATE = 1
    PUBLIC = 2


@lru_cache(maxsize=limits.PLACES_CACHED)
def position(node: bytes) -> int:
    """A node's place: its DHT id as a number."""
    return int.from_bytes(ids.dht_id(node))


def at(key: bytes) -> int:
    """The place of a 20 B DHT key."""
    return int.from_bytes(key)


@lru_cache(maxsize=limits.PLACES_CACHED)
def scope(host: str) -> Scope:
    """host: a literal address."""
    address = ipaddress.ip_address(host)
    if address.is_loopback:
        return Scope.LOOPBACK
    return Scope.PRIVATE if address.is_private or address.is_link_local else Scope.PUBLIC


@lru_cache(maxsize=limits.PLACES_CACHED)
def subnet(host: str) -> bytes | None:
    """The /24 (IPv4) or /48 (IPv6) of a public address; None for loopback and private ones, which are exempt
    from the caps: whoever owns such a range owns the mesh in it."""
    if scope(host) is not Scope.PUBLIC:
        return None
    address = ipaddress.ip_address(host)
    return address.packed[: 3 if address.version == 4 else 6]
