"""Planted faults of forming anew: each is one plausible mistake, and must be caught by the rules beside it."""

from typing import Any

from ioa_p2p.effects import Effect, Now, Save
from ioa_p2p.team import reforms
from ioa_p2p.team.machine import Teams
from ioa_p2p.team.reform import Reform
from ioa_p2p.team.row import TeamRow
from ioa_p2p.team.team import Team
from ioa_p2p.team.worker import Worker
from ioa_p2p.wire import codec
from ioa_p2p.wire.roster import Adopted
from ioa_p2p.wire.team import Tail
from tests.sim.scenario import Mutant


def _with_team(team: type[Team]) -> type[Teams]:
    class Planted(Teams):
        def _make(self, team_id: bytes, row: Any, **options: Any) -> Team:
            return team(self._ground, team_id, row, **options)

    return Planted


def _with_try(one: type[Reform], team: type[Team] = Team) -> type[Teams]:
    class Planted(_with_team(team)):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._reforms.__class__ = Tries

    class Tries(reforms.Reforms):
        def _begin(self, now: Now, team: Team) -> list[Effect]:
            made = self._tries[team.team] = one(self._ground.key, self._ground.network, team, now)
            return self._after(now, team.team, made, made.begin(now))

    return Planted


class _TakesOwnLog(Reform):
    """Adopts its own log, whatever the others hold."""

    def on_tail(self, now: Now, peer: bytes, tail: Tail) -> list[Effect]:
        _, index = self._team.election.log.end
        return super().on_tail(now, peer, codec.replace(tail, last_term=0, last_index=min(index, tail.last_index)))


class _IgnoresLed(Reform):
    """Forms anew though a member hears a coordinator."""

    def on_tail(self, now: Now, peer: bytes, tail: Tail) -> list[Effect]:
        return super().on_tail(now, peer, codec.replace(tail, led=False))


class _SignsAnything(Team):
    """Signs though it is led, or holds more."""

    def check_may_leave(self, adopted: Adopted) -> None:
        pass


class _KeepsOldIncarnation(Team):
    """Whoever is not in the next incarnation goes on in the old one."""

    def leave(self, frame: bytes) -> list[Effect]:
        return []


class _StartsAllAnew(Team):
    """What runs is begun again in the next incarnation."""

    def successor(self, row: TeamRow) -> Any:
        fresh = Worker(
            self.node, self.team, self.state.roster.launcher, self._ground.rows, self._ground.profile,
            self._ground.queue, self._ground.life,
        )  # fmt: skip
        return type(self)(self._ground, self.team, row, blank=True, worker=fresh)


class _CountsSleep(Team):
    """Time that it slept counts as time without a coordinator."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rest._beat_s = float("inf")


class _ForgetsFounding(Teams):
    """The new founding is told, but not saved: after a restart there are two."""

    def _hand_in(self, now: Now, effects: list[Effect]) -> list[Effect]:
        out = super()._hand_in(now, effects)
        return [effect for effect in out if not _is_successor(effect)]


def _is_successor(effect: Effect) -> bool:
    if not isinstance(effect, Save) or effect.space != "team" or effect.value is None:
        return False
    return bool(codec.decode(effect.value, TeamRow).state)


MUTANTS = (
    Mutant("own-log-adopted", _with_try(_TakesOwnLog), frozenset({"L2"})),
    Mutant("own-log-signed", _with_try(_TakesOwnLog, _SignsAnything), frozenset({"I2"})),
    Mutant("led-ignored", _with_try(_IgnoresLed, _SignsAnything), frozenset({"led", "I2"})),
    Mutant("old-incarnation-kept", _with_team(_KeepsOldIncarnation), frozenset({"one-team", "L2"})),
    Mutant("work-begun-again", _with_team(_StartsAllAnew), frozenset({"once-each", "counted"})),
    Mutant("sleep-counted", _with_team(_CountsSleep), frozenset({"led"})),
    Mutant("successor-not-saved", _ForgetsFounding, frozenset({"I4", "one-team", "assert"})),
)
