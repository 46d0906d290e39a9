"""How this node's agents stand in teams: what a call may ask for, and what a roster says of them."""

from collections.abc import Mapping, Sequence

from ioa_p2p.adapters import team
from ioa_p2p.adapters.registry import Agents
from ioa_p2p.node.config import Config
from ioa_p2p.team.commands import Offer
from ioa_p2p.wire import limits
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.roster import Member, SkillBrief

LAUNCHER = "asker"
"""The launcher's name in a roster when it has no agent of its own."""

BUSY_S = 5  # until there may be room, told with a full load


class Offers:
    """agents: ours, as they came up."""

    def __init__(self, node: bytes, agents: Agents, config: Config) -> None:
        self._node = node
        self._cards = agents.cards
        self._concurrency = agents.concurrency
        self._may_coordinate, self._rank = config.may_coordinate, config.rank
        self._nesting = {name for name, one in config.agents.items() if one.adapter == team.NAME}

    def offer(self, addresses: Sequence[str], load: Mapping[str, int]) -> Offer:
        """load: agent -> jobs that run or wait; told as 0..255 of what all agents could hold."""
        room = sum(self._concurrency[name] + limits.QUEUE_PER_REQUESTER_MAX for name in self._cards)
        share = min(255, 255 * sum(load.values()) // room) if room else 0
        members = tuple(self._member(card, addresses) for card in self._cards.values())
        reachable = tuple(addresses)[: limits.RECORD_ADDRESSES_MAX]
        return Offer(members, share, BUSY_S if share == 255 else 0, reachable)

    def me(self, addresses: Sequence[str]) -> Member:
        """The launcher's own entry: an agent of its own if it has one, so that it may work too."""
        for card in self._cards.values():
            return self._member(card, addresses)
        reachable = tuple(addresses)[: limits.RECORD_ADDRESSES_MAX]
        return Member(self._node, LAUNCHER, (), reachable, self._may_coordinate, self._rank)

    def _member(self, card: Card, addresses: Sequence[str]) -> Member:
        nests = card.name in self._nesting
        skills = tuple(
            SkillBrief(one.name, one.inputs, one.outputs, one.effect, one.description[: limits.BRIEF_CHARS_MAX], nests)
            for one in card.skills[: limits.RECORD_SKILLS_MAX]
        )
        return Member(
            self._node,
            card.name,
            skills,
            tuple(addresses)[: limits.RECORD_ADDRESSES_MAX],
            self._may_coordinate,
            self._rank,
            description=card.description[: limits.BRIEF_CHARS_MAX],
        )
