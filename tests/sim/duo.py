"""A node with a team's log and its chat: two machines at one address.

DecisionMessage, "election/..." ──> Election          all else ──> GossipMachine
"""

from typing import Any

from ioa_p2p.effects import Effect, Now
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.team.election import Election
from ioa_p2p.team.election_events import Command
from ioa_p2p.wire.decision import DecisionMessage


class Duo:
    def __init__(self, election: Election, chat: GossipMachine) -> None:
        self.election, self.chat = election, chat

    def start(self, now: Now) -> list[Effect]:
        return [*self.election.start(now), *self.chat.start(now)]

    def handle_message(self, now: Now, peer: bytes, message: Any) -> list[Effect]:
        machine = self.election if isinstance(message, DecisionMessage) else self.chat
        return machine.handle_message(now, peer, message)

    def handle_timer(self, now: Now, name: str) -> list[Effect]:
        machine = self.election if name.startswith("election/") else self.chat
        return machine.handle_timer(now, name)

    def handle_command(self, now: Now, command: Any) -> list[Effect]:
        machine = self.election if isinstance(command, Command) else self.chat
        return machine.handle_command(now, command)
