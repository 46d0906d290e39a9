"""Seeds from the name service: TXT records `ioa-p2p-seed=key@host:port`. docs/wire.md, "Name service".

names ── resolver, DNS_WAIT_S each, side by side ──> TXT texts ──> seeds        no answer: the last ones go on

Whoever runs a domain may publish seeds in it; the key in each makes a forged answer harmless.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ioa_p2p.errors import UsageError
from ioa_p2p.node.config import Seed, parse_seed
from ioa_p2p.wire import limits

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

PREFIX = "ioa-p2p-seed="
ASK_S = 600.0  # records of a mesh change once in weeks; a resolver caches them anyway
RETRY_S = 60.0  # after an answer that did not come

log = logging.getLogger(__name__)


def txt_line(name: str, seed: Seed) -> str:
    """The record for a zone file."""
    return f'{name.rstrip(".")}. 3600 IN TXT "{PREFIX}{seed}"'


class DnsSeeds:
    """names: domain names. make_resolver: dnspython's, of this system by default."""

    name = "dns"

    def __init__(self, names: Sequence[str], make_resolver: "Callable[[], Resolver] | None" = None) -> None:
        self.counters: Counter[str] = Counter()
        self._make_resolver = make_resolver or _system_resolver
        self._found: dict[str, tuple[Seed, ...]] = dict.fromkeys(names, ())
        self._problems: dict[str, str] = {}

    @property
    def every_s(self) -> float:
        return RETRY_S if self._problems else ASK_S

    @property
    def problem(self) -> str:
        return "; ".join(self._problems.values())

    async def look(self) -> Sequence[Seed]:
        await asyncio.gather(*(self._ask(name) for name in self._found))
        return [seed for seeds in self._found.values() for seed in seeds]

    async def _ask(self, name: str) -> None:
        try:
            texts = await self._texts(name)
        except Exception as fault:  # a resolver's faults are many; none is a reason to stop
            self._fail(name, str(fault) or type(fault).__name__)
            return
        self._found[name] = self._seeds(texts)
        self._problems.pop(name, None)
        if not self._found[name]:
            self._fail(name, f"it has no TXT record {PREFIX}key@host:port")

    async def _texts(self, name: str) -> list[str]:
        """All TXT records of a name. Raises what dnspython raises, or TimeoutError."""
        async with asyncio.timeout(limits.DNS_WAIT_S):
            answer = await self._make_resolver().resolve(name, "TXT", search=False)
        return [b"".join(record.strings).decode("ascii", "replace") for record in answer]

    def _seeds(self, texts: Sequence[str]) -> tuple[Seed, ...]:
        """What is written as it must be; of the rest each is counted."""
        ours = [text.removeprefix(PREFIX) for text in texts if text.startswith(PREFIX)]
        self.counters["dns-left-out"] += max(0, len(ours) - limits.DNS_RECORDS_MAX)
        seeds: list[Seed] = []
        for text in ours[: limits.DNS_RECORDS_MAX]:
            try:
                seeds.append(parse_seed(text))
            except UsageError:
                self.counters["dns-bad-seed"] += 1
        return tuple(seeds)

    def _fail(self, name: str, why: str) -> None:
        self.counters["dns-no-answer"] += 1
        told = f"DNS {name}: {why}"
        if self._problems.get(name) != told:
            log.warning(told)
        self._problems[name] = told


def _system_resolver() -> "Resolver":
    from dns.asyncresolver import Resolver  # only here: half a second of start-up, and few meshes need it

    with suppress(Exception):  # no readable resolv.conf
        return Resolver()
    return Resolver(configure=False)
