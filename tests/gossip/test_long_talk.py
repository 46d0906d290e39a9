"""What a member says is bounded in all, for all: public failure 14, in short; `./dev sim talk` says a million lines."""

import tracemalloc
from pathlib import Path

import pytest

from ioa_p2p.effects import Save
from ioa_p2p.errors import UsageError
from ioa_p2p.gossip.events import Behind, Gap
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Entries, Want
from tests.gossip.long_talk import play
from tests.gossip.team import KEYS, NODES, TEAM, chain, events, lines, opened, say, sends, signed
from tests.gossip.test_channel import frontier
from tests.gossip.test_gaps import GAPS, MINUTE

FULL = 300
TOO_MANY = 1 << 62


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHAT_CHAIN_ENTRIES_MAX", FULL)


@pytest.mark.usefixtures("short")
def test_whoever_has_said_all_it_may_is_told_so_also_after_a_restart() -> None:
    member = opened(0)
    for _ in range(FULL):
        say(member)
    for one in (member, member.restarted()):
        with pytest.raises(UsageError) as refused:
            say(one)
        assert (refused.value.code, refused.value.hint) == ("talk-full", "form a new team")


def test_large_lines_fill_a_talk_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHAT_CHAIN_BYTES_MAX", 10_000)
    member = opened(0)
    for _ in range(3):
        say(member, bytes(4_000))
    for one in (member, member.restarted()):
        with pytest.raises(UsageError, match="3 lines, 12"):
            say(one)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("early", [False, True])
def test_nobody_keeps_or_asks_for_more_than_one_may_say_whatever_it_sends(early: bool) -> None:
    member, raws = opened(1), chain(KEYS[0], FULL + 20)
    order = [*raws[: FULL - 1], *raws[FULL:], raws[FULL - 1]] if early else raws
    for raw in order:
        member.hear(NODES[0], Entries(raw))
    assert member.machine.seq(TEAM, NODES[0]) == FULL
    assert not [one for one in member.hear(NODES[0], Entries(raws[FULL])) if isinstance(one, Save)]
    told = member.hear(NODES[2], frontier({0: FULL + 20}, {0: raws}))
    assert not [one for one in sends(told) if isinstance(one, Want)]
    assert events(member.time(GAPS, MINUTE), Gap) == []


@pytest.mark.usefixtures("short")
def test_a_talk_without_end_while_one_is_away_is_kept_up_to_its_bound_and_given_to_it(tmp_path: Path) -> None:
    found = play(tmp_path, authors=3, lines_each=FULL + 50)
    assert (found.kept, found.back) == (3 * FULL, 3 * FULL)
    assert found.repeated <= 0.3
    assert found.disk_mb * 1e6 <= 3 * FULL * 600


def test_lines_for_one_who_is_away_wait_nowhere_in_memory() -> None:
    """Nor for one whose link is there, but who does not read."""
    member = opened(0, 3)
    grown: list[int] = []
    tracemalloc.start()
    for _ in range(3):
        told = [effect for _ in range(1_000) for effect in say(member)]
        assert len(sends(told[-100:])) == 0, "who does not answer gets no more"
        assert len(events(told, Behind)) <= 2
        del told
        member.disk = MemoryStorage()
        grown.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert grown[2] - grown[1] < 64 * 1_000, "a few bytes a line"


@pytest.mark.parametrize("proven", [0, 3])
def test_a_liars_word_of_lines_that_nobody_has_is_believed_within_bounds(proven: int) -> None:
    member = opened(1)
    raws = chain(KEYS[2], proven + 1)
    for raw in raws[:proven]:
        member.hear(NODES[2], Entries(raw))
    member.hear(NODES[0], Entries(signed(KEYS[0], 1, seen=((NODES[2], TOO_MANY),))))
    effects = member.time(GAPS, MINUTE)
    assert lines(effects) == [(NODES[0], 1)]
    last = proven + limits.CHAT_HEARSAY_MAX
    assert events(effects, Gap) == [Gap(TEAM, NODES[2], proven + 1, last)]
    for one in (member, member.restarted()):
        assert one.machine.gaps(TEAM) == [(NODES[2], proven + 1, last)]
    assert lines(member.hear(NODES[2], Entries(raws[proven]))) == [(NODES[2], proven + 1)], "what comes is told"
