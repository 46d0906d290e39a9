"""A team's own row on disk: space "team", key team id."""

from ioa_p2p.wire.codec import Message

SPACE = "team"


class TeamRow(Message, frozen=True):
    """founding: entry 0. lost_disk: this member joined it again without its memory, and never votes in it.
    ahead_s: how far the launcher's wall clock is ahead of ours. state: what an incarnation that was formed anew began
    from. left: the founding of one that goes on without us."""

    founding: bytes
    lost_disk: bool = False
    ahead_s: int = 0
    state: bytes = b""
    left: bytes = b""
