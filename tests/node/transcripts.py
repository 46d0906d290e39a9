"""Reading transcripts in tests: all events and the verdict of a file's bytes."""

import io
from typing import Any

from ioa_p2p.node.replaying import Verdict, replay


def read(data: bytes, network: bytes | None = None) -> tuple[list[dict[str, Any]], Verdict]:
    """Raises PeerError."""
    events: list[dict[str, Any]] = []
    told = replay(io.BytesIO(data), network)
    while True:
        try:
            events.append(next(told))
        except StopIteration as end:
            return events, end.value
