"""What this member sends to others of its team, apart from the election: said again until it is known to have arrived.

deeds, wishes, lost links ──> the coordinator (beats of a task also to the launcher)
founding entry ──> members that were never heard
"""

from collections.abc import Iterable, Sequence

from ioa_p2p.effects import Effect, Send
from ioa_p2p.team.election import Election
from ioa_p2p.team.links import Links
from ioa_p2p.team.role import Role
from ioa_p2p.team.state import TeamState
from ioa_p2p.team.wishes import Wishes
from ioa_p2p.team.worker import Deed
from ioa_p2p.wire.team import Founding, Joined, LostLinks, Report, Said, Wish


class Post:
    def __init__(self, team: bytes, founding: bytes, election: Election, links: Links) -> None:
        """founding: the frame of entry 0."""
        self.wishes = Wishes()
        self._team = team
        self._founding = founding
        self._election = election
        self._links = links

    def to_coordinator(self, messages: Iterable[Wish | LostLinks | Said]) -> list[Effect]:
        to = self._election.coordinator
        return [Send(to, message) for message in messages] if to is not None else []

    def carry(self, deeds: Sequence[Deed], state: TeamState) -> list[Effect]:
        """Reports go to the coordinator, and beats also to the launcher, who watches."""
        effects: list[Effect] = []
        for deed in deeds:
            if not isinstance(deed, Report):
                effects.append(deed)
                continue
            beat = deed.state in ("accepted", "running", "busy")
            to = {self._election.coordinator, state.roster.launcher if beat else None} - {None}
            effects += [Send(node, deed) for node in sorted(filter(None, to))]
        return effects

    def lost_links(self) -> list[Effect]:
        down = tuple(sorted(self._links.down))
        return self.to_coordinator([LostLinks(self._team, down)]) if down else []

    def open_wishes(self, state: TeamState) -> list[Effect]:
        return self.to_coordinator(self.wishes.open(state))

    def founding(self, nodes: set[bytes]) -> list[Effect]:
        """To members that were never heard in this team: they may not know that it stands."""
        return [Send(node, Founding(self._founding)) for node in sorted(nodes & self._links.unheard)]

    def ask_for_news(self, state: TeamState, me: bytes) -> list[Effect]:
        """Who follows nobody and may not stand cannot ask by an election; the others may be asleep."""
        idle = self._election.role is Role.FOLLOWER and self._election.coordinator is None
        others = sorted(state.roster.voters - {me}) if idle else []
        return [Send(node, Joined(self._team)) for node in others]
