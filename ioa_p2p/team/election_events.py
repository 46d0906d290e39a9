"""What `Election` is told (commands) and what it tells (events)."""

from dataclasses import dataclass

from ioa_p2p.wire.decision import Entry

# -- commands


@dataclass(frozen=True, slots=True)
class Propose:
    """Decide `step`. Raises UsageError: 'not-coordinator', 'step-too-large', 'busy', 'log-full'; for a change of
    the roster also 'too-early' (no entry of this term is decided yet), 'change-open', 'too-many-changes', and what
    `standing.changed` says.

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
    """Hand over on purpose: a candidate that is caught up is asked to stand at once; if there is none yet, as soon
    as there is, for as long as the longest election timeout. A follower ignores it."""


@dataclass(frozen=True, slots=True)
class StandAside:
    """aside: hand over, and do not stand while there are others that may (low battery, shutdown). Not remembered
    over a restart."""

    aside: bool


@dataclass(frozen=True, slots=True)
class Compact:
    """The checkpoint in entry `decided_at` is decided, and `state` is the one it names, as of entry `index`: let it
    stand for all entries up to there. Ignored if the log rests on it, or on a later one, already."""

    index: int
    state: bytes
    decided_at: int


# -- events


@dataclass(frozen=True, slots=True)
class Committed:
    """Entry `index` is decided. In order from index 1, each once in the life of the machine (or a `Restored` stands
    for it): after a restart
    `start` tells all that was known to be decided again, so that a listener rebuilds its state from them.
    A term's first entry is one of them; its step is empty."""

    index: int
    entry: Entry
    frame: bytes


@dataclass(frozen=True, slots=True)
class Restored:
    """All up to entry `index` is decided, and this is what came of it: a listener replaces its state. After a
    start, before any `Committed`, or when a snapshot was taken."""

    index: int
    state: bytes


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


Command = Propose | LinkPeer | StepDown | StandAside | Compact
Event = Committed | Restored | Elected | Deposed | Stale | MemoryLost
