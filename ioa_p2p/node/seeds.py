"""First contacts: who names them, where they are now, and handing them to the DHT.

    Source (config, lan, dns, list) ── look, each at its own pace ──> seeds ── resolve ──> merged ──> join(contacts)
              ^── wake(): now                                      remembered peers: the DHT asks those by itself

Sources take turns, in their order, until the DHT has as many seeds as it tries: a full one cannot shut out the next.
A seed that is silent and known at several places is tried at each of them in turn.
"""

import asyncio
import ipaddress
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, Protocol

from ioa_p2p.errors import IoaError
from ioa_p2p.node.config import Config, Seed
from ioa_p2p.node.names import Names
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact

RESOLVE_S = 60.0  # how often seeds that are names are looked up again, for addresses change
TURN_S = 30.0  # a silent seed has been tried five times by then; so long one of its places is tried
FIRST_WAIT_S = 3.0  # the first join waits so long for the slower sources, or a newcomer would think itself alone

log = logging.getLogger(__name__)


class Source(Protocol):
    """Somebody who names seeds."""

    @property
    def name(self) -> str: ...

    @property
    def every_s(self) -> float:
        """How often it wants to be asked."""
        ...

    @property
    def problem(self) -> str:
        """What keeps it from naming any, in words for people; empty if nothing."""
        ...

    async def look(self) -> Sequence[Seed]:
        """The seeds it names now, the best first. Never raises for the world's fault."""
        ...


class ConfigSeeds:
    """The seeds of config.toml, a flag or a variable."""

    name = "config"
    every_s = RESOLVE_S
    problem = ""

    def __init__(self, config: Config) -> None:
        self._seeds = config.seeds

    async def look(self) -> Sequence[Seed]:
        return self._seeds


@dataclass(frozen=True, slots=True)
class Known:
    """A seed, who named it, and where it is now. No contacts: its name has no address."""

    seed: Seed
    source: str
    contacts: tuple[Contact, ...]


class Seeds:
    """own: our key. join(contacts): all seeds there are, one place each. heard(): keys of those that answer."""

    def __init__(
        self, own: bytes, join: Callable[[tuple[Contact, ...]], None], heard: Callable[[], frozenset[bytes]]
    ) -> None:
        self._own = own
        self._join = join
        self._heard = heard
        self._sources: tuple[Source, ...] = ()
        self._found: dict[str, tuple[Known, ...]] = {}
        self._turns: Counter[bytes] = Counter()
        self._news: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._joined: tuple[Contact, ...] | None = None
        self._names = defaultdict[str, Names](Names)  # by source: slow names of one hold up no other

    @property
    def known(self) -> list[Known]:
        """All seeds, by source."""
        return [known for source in self._sources for known in self._found.get(source.name, ())]

    @property
    def problems(self) -> list[str]:
        return [source.problem for source in self._sources if source.problem]

    def answers(self, seed: Seed) -> bool:
        return seed.node in self._heard()

    def follow(self, sources: Sequence[Source]) -> None:
        """Ask these from now on, in this order of merit, instead of those before."""
        self._stop()
        self._sources = tuple(sources)
        names = {source.name for source in sources}
        self._found = {name: found for name, found in self._found.items() if name in names}
        self._news = {name: asyncio.Event() for name in names}
        self._tasks = [asyncio.create_task(self._keep(source)) for source in sources]
        self._tasks.append(asyncio.create_task(self._take_turns()))

    def close(self) -> None:
        self._stop()
        for names in self._names.values():
            names.close()

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    def wake(self, *names: str) -> None:
        """Have these sources look again now; all of them without a name."""
        for name in names or tuple(self._news):
            if name in self._news:
                self._news[name].set()

    # -- asking

    async def _keep(self, source: Source) -> None:
        while True:
            self._news[source.name].clear()
            try:
                await self._look(source)
            except IoaError as fault:  # our disk: what was found before goes on
                log.warning("seeds of %s: %s", source.name, fault)
            with suppress(TimeoutError):
                async with asyncio.timeout(source.every_s):
                    await self._news[source.name].wait()

    async def _look(self, source: Source) -> None:
        before = {known.seed: known.contacts for known in self._found.get(source.name, ())}
        names = self._names[source.name]
        seeds = [seed for seed in dict.fromkeys(await source.look()) if seed.node != self._own]
        resolved = await asyncio.gather(*(resolve(seed, names) for seed in seeds))
        self._found[source.name] = tuple(
            Known(seed, source.name, contacts or before.get(seed, ()))  # an old address is better than none
            for seed, contacts in zip(seeds, resolved, strict=True)
        )
        self._tell()

    async def _take_turns(self) -> None:
        await asyncio.sleep(FIRST_WAIT_S)
        self._tell(waited=True)
        while True:
            await asyncio.sleep(TURN_S)
            self._turns.update({known.seed.node for known in self.known} - self._heard())
            self._tell()

    # -- telling

    def _tell(self, *, waited: bool = False) -> None:
        """Join by what is known, if that is news. That nobody is known is news once all sources had their time."""
        places = merged([self._found.get(source.name, ()) for source in self._sources])
        contacts = tuple(options[self._turns[key] % len(options)] for key, options in places.items())
        asked = waited or all(source.name in self._found for source in self._sources)
        if contacts != self._joined and (contacts or asked):
            self._joined = contacts
            self._join(contacts)


def merged(found: Iterable[Sequence[Known]]) -> Mapping[bytes, list[Contact]]:
    """Node -> where it may be, the best place first. found: by source; the sources take turns."""
    places: dict[bytes, list[Contact]] = {}
    for known in chain.from_iterable(zip_longest(*found)):
        for contact in known.contacts if known is not None else ():
            if contact.key in places or len(places) < limits.DHT_SEEDS_MAX:
                options = places.setdefault(contact.key, [])
                options += [contact] if contact not in options else []
    return places


async def resolve(seed: Seed, names: Names) -> tuple[Contact, ...]:
    """The seed's contacts: its literal address, or what its name resolves to now."""
    with suppress(ValueError):
        return (Contact(seed.node, str(ipaddress.ip_address(seed.host)), seed.port),)
    return tuple(Contact(seed.node, *address) for address in await names.addresses(seed.host, seed.port))


def row(known: Known, *, answers: bool) -> dict[str, Any]:
    """One seed as docs/control.md tells it."""
    addresses = [f"{contact.host}:{contact.port}" for contact in known.contacts]
    return {"seed": str(known.seed), "source": known.source, "addresses": addresses, "answers": answers}
