"""node/dns.py, against a name server of our own on loopback."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import dns.message
import dns.rcode
import dns.rrset
import pytest
from dns.asyncresolver import Resolver

from ioa_p2p.node.config import Seed
from ioa_p2p.node.dns import ASK_S, PREFIX, RETRY_S, DnsSeeds, txt_line
from ioa_p2p.wire import limits

NAME = "seeds.example.org"
ONE, OTHER = Seed(bytes(32), "192.0.2.1", 4701), Seed(bytes([1]) * 32, "2001:db8::1", 4702)


class NameServer(asyncio.DatagramProtocol):
    """Answers TXT questions by `zone`: name -> texts; others do not exist. `silent`: says nothing."""

    def __init__(self) -> None:
        self.zone: dict[str, list[str]] = {}
        self.silent = False
        self.asked = 0
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    @property
    def port(self) -> int:
        return self._transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked += 1
        if self.silent:
            return
        question = dns.message.from_wire(data)
        name = question.question[0].name
        answer = dns.message.make_response(question)
        texts = self.zone.get(name.to_text().rstrip("."))
        if texts is None:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif texts:
            answer.answer.append(dns.rrset.from_text_list(name, 60, "IN", "TXT", texts))
        self._transport.sendto(answer.to_wire(max_size=65_000), addr)

    def resolver(self) -> Resolver:
        made = Resolver(configure=False)
        made.nameservers, made.port = ["127.0.0.1"], self.port
        return made


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    yield made
    transport.close()


def txt(*texts: str) -> list[str]:
    return [f'"{text}"' for text in texts]


async def test_seeds_are_read_from_txt_records(server: NameServer) -> None:
    server.zone = {NAME: txt(f"{PREFIX}{ONE}", "v=spf1 -all", f"{PREFIX}{OTHER}")}
    source = DnsSeeds([NAME], server.resolver)
    assert set(await source.look()) == {ONE, OTHER}
    assert (source.problem, source.every_s) == ("", ASK_S)
    assert source.counters["dns-bad-seed"] == 0, "other records of the name are not meant for us"


async def test_a_record_cut_into_strings_is_one_text(server: NameServer) -> None:
    line = f"{PREFIX}{ONE}"
    server.zone = {NAME: [f'"{line[:30]}" "{line[30:]}"']}
    assert list(await DnsSeeds([NAME], server.resolver).look()) == [ONE]


async def test_the_line_for_the_zone_file_is_what_is_read_back(server: NameServer) -> None:
    name, _, _, _, text = txt_line(NAME, OTHER).split(" ", 4)
    server.zone = {name.rstrip("."): [text]}
    assert list(await DnsSeeds([NAME], server.resolver).look()) == [OTHER]


async def test_what_is_no_seed_is_counted_and_the_rest_goes_on(server: NameServer) -> None:
    bad = (f"{PREFIX}nobody@192.0.2.1:1", f"{PREFIX}", f"{PREFIX}{ONE}x", f"{PREFIX}\\255\\000")
    server.zone = {NAME: txt(*bad, f"{PREFIX}{ONE}")}
    source = DnsSeeds([NAME], server.resolver)
    assert list(await source.look()) == [ONE]
    assert source.counters["dns-bad-seed"] == len(bad)


async def test_more_records_than_the_bound_are_left_out_and_counted(server: NameServer) -> None:
    many = [ONE._replace(port=4_000 + number) for number in range(limits.DNS_RECORDS_MAX + 5)]
    server.zone = {NAME: txt(*(f"{PREFIX}{one}" for one in many))}
    source = DnsSeeds([NAME], server.resolver)
    assert len(await source.look()) == limits.DNS_RECORDS_MAX
    assert source.counters["dns-left-out"] == 5


@pytest.mark.parametrize(
    "zone", [{}, {NAME: []}, {NAME: txt("v=spf1 -all")}], ids=["no name", "no TXT", "none of ours"]
)
async def test_a_name_without_seeds_is_a_problem_in_words(server: NameServer, zone: dict[str, list[str]]) -> None:
    server.zone = zone
    source = DnsSeeds([NAME], server.resolver)
    assert list(await source.look()) == []
    assert source.problem.startswith(f"DNS {NAME}: ")
    assert source.every_s == RETRY_S


async def test_a_silent_server_costs_its_time_and_the_last_answer_goes_on(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.zone = {NAME: txt(f"{PREFIX}{ONE}"), "other.example.org": txt(f"{PREFIX}{OTHER}")}
    source = DnsSeeds([NAME, "other.example.org"], server.resolver)
    assert list(await source.look()) == [ONE, OTHER]
    server.silent = True
    monkeypatch.setattr(limits, "DNS_WAIT_S", 0.05)
    assert list(await source.look()) == [ONE, OTHER]
    assert "TimeoutError" in source.problem
    server.silent = False
    del server.zone["other.example.org"]
    monkeypatch.undo()
    assert list(await source.look()) == [ONE, OTHER], "one name's failure is no word about its seeds"
    assert source.problem.startswith("DNS other.example.org")


async def test_no_name_asks_nobody(server: NameServer) -> None:
    assert list(await DnsSeeds([], server.resolver).look()) == []
    assert server.asked == 0
