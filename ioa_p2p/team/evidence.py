"""What others hold of us that we do not remember: our disk was put back to an earlier day, or is a copy.

    a new term's certificate ── our vote in it, and none such on our disk ──┐
    an entry that we lack, signed by us in a term after ours ───────────────┴──> memory lost

Both bear our signature, so nobody can make us believe it. An honest member never meets either: it saves before it
sends.
"""

from ioa_p2p.team.decisions import Decisions
from ioa_p2p.team.election_events import MemoryLost
from ioa_p2p.team.intake import Intake, Mandate
from ioa_p2p.wire import codec, frames
from ioa_p2p.wire.decision import Vote


def notice_loss(log: Decisions, me: bytes, known: Mandate, intake: Intake) -> MemoryLost | None:
    """Before `intake` counts. The log forswears its votes at once. known: the last mandate seen before."""
    what = _forgotten(log, me, known, intake) if log.may_vote else ""
    if not what:
        return None
    log.forswear()
    return MemoryLost(what)


def _forgotten(log: Decisions, me: bytes, known: Mandate, intake: Intake) -> str:
    mandate = intake.mandate
    if mandate is not None and mandate.term > known.term and _voted(me, mandate) and not _remembers(log, mandate):
        return f"our vote of term {mandate.term}"
    late = (held.entry for held in intake.fresh if held.entry.node == me and held.entry.term > log.term)
    return next((f"our entry {entry.index} of term {entry.term}" for entry in late), "")


def _voted(me: bytes, mandate: Mandate) -> bool:
    return any(codec.decode(frames.parse(vote).body, Vote).node == me for vote in mandate.certificate)


def _remembers(log: Decisions, mandate: Mandate) -> bool:
    return (log.term, log.vote) == (mandate.term, mandate.coordinator)
