"""Can we trust our own wall clock? Peers say what time they have, and we are one voice among them.

    Pong's wall - ours ──> one voice a subnet, or private peer ── with our own 0 ──> median
                                                                 ├─ within what holders accept ──> trusted
                                                                 └─ beyond, or long ago ──> doubted: no publishing

A liar has one voice, and so has a group in one subnet: more than half of all whom we asked must say otherwise.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from ioa_p2p.dht import space
from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.events import ClockDoubted, ClockTrusted
from ioa_p2p.effects import Effect, Emit, Now
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact

_DOUBT_S = limits.CLOCK_SKEW_S + limits.DHT_CALL_S  # an offset is known to within one call


class Clock:
    """on_jump(now): our wall clock was set, or we slept: ask peers for their time again. on_turn(now): a doubt began or
    ended. Start it with `watch`."""

    def __init__(
        self,
        agenda: Agenda,
        out: list[Effect],
        on_jump: Callable[[Now], None],
        on_turn: Callable[[Now], None],
    ) -> None:
        self.offset_s: float | None = None
        self._agenda = agenda
        self._out = out
        self._on_jump = on_jump
        self._on_turn = on_turn
        self._voices: OrderedDict[bytes, float] = OrderedDict()
        self._epoch_s: float | None = None

    @property
    def doubted(self) -> bool:
        """`offset_s` then says how far we are behind (+) or ahead (-)."""
        return self.offset_s is not None

    def watch(self, now: Now) -> None:
        """Look at it now and every few seconds from now on."""
        self._agenda.at(now.boot + limits.CLOCK_WATCH_S, self.watch)
        self.check(now)

    def check(self, now: Now) -> None:
        """Has somebody set our clock? Asked before anything may be signed."""
        epoch_s = now.wall - now.boot
        jumped = self._epoch_s is not None and abs(epoch_s - self._epoch_s) > limits.DHT_JUMP_S
        self._epoch_s = epoch_s
        if jumped:
            self._voices.clear()
            self._on_jump(now)
        if jumped or now.wall < limits.WALL_S_MIN:
            self._judge(now)

    def heard(self, now: Now, peer: Contact, wall_s: int) -> None:
        """A peer told its time in answer to our Ping; one that was never set is no voice."""
        if wall_s < limits.WALL_S_MIN:
            return
        voice = space.subnet(peer.host) or peer.key
        self._voices.pop(voice, None)
        self._voices[voice] = wall_s - now.wall
        if len(self._voices) > limits.CLOCK_VOICES_MAX:
            self._voices.popitem(last=False)
        self._judge(now)

    def _judge(self, now: Now) -> None:
        if now.wall < limits.WALL_S_MIN:
            self._doubt(now, _middle(self._voices.values()) or limits.WALL_S_MIN - now.wall)
        elif abs(offset_s := _middle(self._voices.values())) > _DOUBT_S:
            self._doubt(now, offset_s)
        elif self.offset_s is not None and self._voices and abs(_middle(self._voices.values(), None)) <= _DOUBT_S:
            self._trust(now)

    def _trust(self, now: Now) -> None:
        self.offset_s = None
        self._out.append(Emit(ClockTrusted()))
        self._on_turn(now)

    def _doubt(self, now: Now, offset_s: float) -> None:
        news, self.offset_s = self.offset_s is None, offset_s
        if news:
            self._out.append(Emit(ClockDoubted(offset_s)))
            self._on_turn(now)


def _middle(voices: Iterable[float], own: float | None = 0.0) -> float:
    """The median of the voices and our own; between two the one that speaks for us."""
    ordered = sorted(voices if own is None else (own, *voices))
    middle = len(ordered) // 2
    return min(ordered[(len(ordered) - 1) // 2], ordered[middle], key=abs)
