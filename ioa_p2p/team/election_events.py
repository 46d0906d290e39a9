"""What `Election` is told (commands) and what it tells (events)."""

from dataclasses import dataclass

from ioa_p2p.wire.decision import Entry

# -- commands


@dataclass(frozen=True, slots=True)
class Propose:
    """Decide `step`. Raises UsageError: 'not-coordinator', 'step-too-large', 'busy', 'log-full'.

    key: names the proposal; the same key again, while the first is still open in this term, is ignored.
    """

    step: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class LinkPeer:
    """The link to `node` stands, or is gone."""

    node: bytes
    up: bool


@dataclass(frozen=True, slots=True)
class StepDown:
    """Hand over on purpose: the most caught-up candidate is asked to stand at once. A follower ignores it."""


# -- events


@dataclass(frozen=True, slots=True)
class Committed:
    """Entry `index` is decided. In order from index 1, each once in the life of the machine: after a restart
    `start` tells all that was known to be decided again, so that a listener rebuilds its state from them.
    A term's first entry is one of them; its step is empty."""

    index: int
    entry: Entry
    frame: bytes


@dataclass(frozen=True, slots=True)
class Elected:
    """The certificate of `term` was seen and verified. Once a term in the life of the machine."""

    term: int
    coordinator: bytes


@dataclass(frozen=True, slots=True)
class Deposed:
    """We coordinate no more; we did in `term`."""

    term: int


@dataclass(frozen=True, slots=True)
class Stale:
    """A voter speaks of a higher incarnation of this team. Its word is no proof: fetch the founding entry."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class MemoryLost:
    """It is proven that our disk forgot `what`: we never vote again in this incarnation."""

    what: str


Command = Propose | LinkPeer | StepDown
Event = Committed | Elected | Deposed | Stale | MemoryLost
