"""A witness: a node in a team that has no agent in it. It keeps the decision log and votes; it never leads.

So two that work together can decide while either is away. Any node that works for the launcher may be called as one.
"""

from collections.abc import Iterable, Sequence

from ioa_p2p.wire import codec
from ioa_p2p.wire.roster import Member
from ioa_p2p.wire.team import Bid

WITNESS = "witness"
"""What it is called by, and its name in a roster."""

_FEW = 2  # nodes of a team that stands still when one of them is away


def witness(node: bytes, addresses: tuple[str, ...]) -> Member:
    return Member(node, WITNESS, addresses=addresses, witness=True)


def with_witness(members: Sequence[Member], bids: Iterable[Bid], *, always: bool) -> tuple[Member, ...]:
    """The first that bid and is not in the team anyway; unless it is wanted always, only where two nodes are alone."""
    nodes = {member.node for member in members}
    if not always and len(nodes) != _FEW:
        return tuple(members)
    able = (bid.member for bid in bids if bid.member.witness and bid.member.node not in nodes)
    first = next(able, None)
    return (*members, codec.replace(first, may_coordinate=False)) if first is not None else tuple(members)
