"""What a team said, read back from disk in causal order.

    chains on disk ── entry by entry, in turn ──> causal order ──> lines as they were (or could have been) told

Two members may see independent lines in another order; none sees an answer before its question.
"""

from collections.abc import Collection, Iterator, Mapping

from ioa_p2p.effects import Rows, Save
from ioa_p2p.gossip.log import Chain
from ioa_p2p.gossip.order import Order
from ioa_p2p.wire.gossip import Entry


def read(rows: Rows, team: bytes, members: Collection[bytes]) -> Iterator[Entry]:
    """Every line of a team that was told here. Also after its channel was closed."""
    chains = chains_of(rows, team, members, cuts(rows, team))
    return replay(0.0, chains, order_of(rows, team, chains))


def chains_of(rows: Rows, team: bytes, members: Collection[bytes], cuts: Mapping[bytes, int]) -> dict[bytes, Chain]:
    """Of every member, and of who was removed."""
    return {author: Chain(team, author, rows, cuts.get(author)) for author in sorted({*members, *cuts})}


def replay(boot: float, chains: Mapping[bytes, Chain], order: Order) -> Iterator[Entry]:
    """Load the chains, step by step so that few entries wait for another chain's; those that still wait then
    wait from `boot` on."""
    for author, chain in chains.items():
        order.end(author, chain.end)
    readers = [chain.load() for chain in chains.values()]
    while readers:
        for reader in list(readers):
            entry = next(reader, None)
            if entry is None:
                readers.remove(reader)
            else:
                yield from order.add(boot, entry)


def order_of(rows: Rows, team: bytes, authors: Collection[bytes]) -> Order:
    """An order that knows what was told although something it had seen was missing."""
    forced, given_up = ({author: int.from_bytes(seq) for author, seq in rows(space)} for space in _spaces(team))
    return Order(authors, forced, given_up)


def save_forced(team: bytes, forced: Mapping[bytes, int], given_up: Mapping[bytes, int]) -> list[Save]:
    """forced: author -> the last seq told so. given_up: author -> what counts as met, `Order.given_up`."""
    marks = zip(_spaces(team), (forced, given_up), strict=True)
    return [Save(space, author, seq.to_bytes(8)) for space, some in marks for author, seq in some.items()]


def cuts(rows: Rows, team: bytes) -> dict[bytes, int]:
    """author that was removed -> the last of its lines that counts."""
    return {author: int.from_bytes(seq) for author, seq in rows(_cuts_space(team))}


def save_cut(team: bytes, author: bytes, seq: int) -> Save:
    return Save(_cuts_space(team), author, seq.to_bytes(8))


def forget(rows: Rows, team: bytes, members: Collection[bytes]) -> list[Save]:
    """Delete every line of a team that is over."""
    authors = sorted({*members, *cuts(rows, team)})
    lines = [save for author in authors for save in Chain(team, author, rows).forget()]
    beside = (*_spaces(team), _cuts_space(team))
    return [*lines, *(Save(space, author, None) for space in beside for author, _ in rows(space))]


def _cuts_space(team: bytes) -> str:
    return f"chat/{team.hex()}/cuts"


def _spaces(team: bytes) -> tuple[str, str]:
    return f"chat/{team.hex()}/forced", f"chat/{team.hex()}/given-up"
