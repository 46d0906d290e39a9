"""What a goal may cost and what it did cost. docs/wire.md, "Teams".

Amounts are whole numbers, so that sums are exact: tokens of models, money in millionths of the unit that the mesh
agreed on, calls of agents and models.
"""

from typing import Annotated

from msgspec import Meta

from ioa_p2p.wire import limits
from ioa_p2p.wire.codec import Message

Amount = Annotated[int, Meta(ge=0, le=limits.AMOUNT_MAX)]
Agents = Annotated[int, Meta(ge=0, le=limits.AGENTS_BELOW_MAX)]


class Spent(Message, frozen=True):
    """What was used up. calls: of agents and of models, all levels below included."""

    tokens: Amount = 0
    money: Amount = 0
    calls: Amount = 0


class Allowance(Message, frozen=True):
    """What may be used up at most; None: not limited. agents: that may be at work below, one's own team included."""

    tokens: Amount | None = None
    money: Amount | None = None
    calls: Amount | None = None
    agents: Agents = 0


NOTHING = Spent()
UNLIMITED = Allowance()
