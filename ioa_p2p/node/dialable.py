"""Where others find this node."""

import ipaddress
from collections.abc import Sequence


def dialable(host: str, addresses: Sequence[str]) -> str:
    """Where others find a node bound to `host`: if that is every address (0.0.0.0), the first its links have."""
    if not ipaddress.ip_address(host).is_unspecified:
        return host
    return next((address.split("/")[2] for address in addresses if address.startswith(("/ip4/", "/ip6/"))), host)
