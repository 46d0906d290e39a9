"""`python -m bench.link [--json] [--runs N] [--small]`: what a message over a link costs.

Ten processes, a full team, 1 KiB signed and verified; in the same run a plain asyncio TCP + NaCl floor, and
py-libp2p's gossipsub alone at 2 messages a second. `channel` is a whole team channel under load: from saying a
line to the event at a member, durable, chained and verified. CPU-ms are per delivery, summed over all processes and
threads, counted only while messages flow: import and mesh-making are outside.
"""

import multiprocessing
import time
from dataclasses import dataclass

from bench._channel_member import ChannelMember
from bench._fleet import Fleet
from bench._link_members import FloorMember, GossipsubMember, LinkMember, Member
from bench._measure import Figures, arguments, combine, percentile, report, say

SETTLE_S = 2.0  # identify exchanges and first heartbeats end
FREEZE_S_MAX = 20.0


@dataclass(frozen=True)
class Size:
    """members: processes. chat_s, gossip_s: how long the slow rates are measured. burst: messages a member."""

    members: int = 10
    chat_s: float = 10.0
    gossip_s: float = 10.0
    burst: int = 400
    inbound: int = 300


SMALL = Size(members=4, chat_s=2.0, gossip_s=3.0, burst=50, inbound=20)


@dataclass(frozen=True)
class Phase:
    """What one spell of messages cost."""

    cpu_ms: float
    delivered_ratio: float
    p99_ms: float


def run(size: Size) -> Figures:
    floor, floor_load = _measured(FloorMember, size, burst=True)
    say(f"floor: {floor.cpu_ms:.2f} CPU-ms at 10 Hz, {floor_load.cpu_ms:.3f} under load")
    figures = _our_links(size)
    channel = _channel(size)
    say(f"channel: {channel.cpu_ms:.3f} CPU-ms under load")
    gossipsub, _ = _measured(GossipsubMember, size, burst=False, rate_hz=2.0, seconds=size.gossip_s)
    say(f"gossipsub: {gossipsub.cpu_ms:.1f} CPU-ms at 2 Hz")
    return figures | {
        "floor_cpu_ms_10hz": floor.cpu_ms,
        "floor_cpu_ms_load": floor_load.cpu_ms,
        "floor_p99_ms_10hz": floor.p99_ms,
        "channel_cpu_ms_load": channel.cpu_ms,
        "channel_delivered_ratio": channel.delivered_ratio,
        "gossipsub_cpu_ms": gossipsub.cpu_ms,
        "gossipsub_delivered_ratio": gossipsub.delivered_ratio,
    }


def _our_links(size: Size) -> Figures:
    with Fleet(LinkMember, size.members) as fleet:
        everyone = _joined(fleet)
        chat = _spell(fleet, size, 10.0, size.chat_s)
        load = _spell(fleet, size, 0.0, 0.0)
        say(f"links: {chat.cpu_ms:.2f} CPU-ms at 10 Hz, {load.cpu_ms:.3f} under load")
        frozen_s = _frozen_peer_noticed_s(fleet, [node for node, _ in everyone])
        accepted = _inbound_accepted(everyone[0], size.inbound)
    return {
        "cpu_ms_10hz": chat.cpu_ms,
        "p99_ms_10hz": chat.p99_ms,
        "cpu_ms_load": load.cpu_ms,
        "delivered_ratio": min(chat.delivered_ratio, load.delivered_ratio),
        "frozen_peer_noticed_s": frozen_s,
        "inbound_accepted": accepted,
    }


def _channel(size: Size) -> Phase:
    with Fleet(ChannelMember, size.members) as fleet:
        _joined(fleet)
        return _spell(fleet, size, 0.0, 0.0)


def _measured(
    member: type[Member], size: Size, *, burst: bool, rate_hz: float = 10.0, seconds: float = 0.0
) -> tuple[Phase, Phase]:
    with Fleet(member, size.members) as fleet:
        _joined(fleet)
        chat = _spell(fleet, size, rate_hz, seconds or size.chat_s)
        return chat, _spell(fleet, size, 0.0, 0.0) if burst else chat


def _joined(fleet: Fleet) -> list[tuple[bytes, str]]:
    everyone = fleet.all("open")
    fleet.all("join", everyone)
    time.sleep(SETTLE_S)
    return everyone


def _spell(fleet: Fleet, size: Size, rate_hz: float, seconds: float) -> Phase:
    """`rate_hz` messages a second in the whole team for so many seconds, or a burst when that is 0."""
    count = max(1, round(rate_hz * seconds / size.members)) if rate_hz else size.burst
    expected = count * size.members * (size.members - 1)
    fleet.all("take_figures")
    before = fleet.cpu_s()
    fleet.all("say", count, rate_hz / size.members)
    _wait_for(fleet, expected)
    cpu_s = fleet.cpu_s() - before
    taken = fleet.all("take_figures")
    delivered = sum(number for number, _ in taken)
    latencies = [latency for _, some in taken for latency in some]
    return Phase(1000 * cpu_s / max(delivered, 1), delivered / expected, percentile(latencies, 0.99))


def _wait_for(fleet: Fleet, expected: int) -> None:
    """Until all is delivered, or nothing more comes for some seconds."""
    last, still_s = -1, 0.0
    while still_s < 5.0:
        delivered = sum(fleet.all("delivered_so_far"))
        if delivered >= expected:
            return
        still_s = still_s + 0.1 if delivered == last else 0.0
        last = delivered
        time.sleep(0.1)


def _frozen_peer_noticed_s(fleet: Fleet, nodes: list[bytes]) -> float:
    """From SIGSTOP of the last member until every other one has lost its link."""
    last = len(nodes) - 1
    at = fleet.freeze(last)
    noticed = [fleet.one(number, "lost_at", nodes[last], FREEZE_S_MAX) for number in range(last)]
    fleet.thaw(last)
    return max(noticed) - at


def _inbound_accepted(target: tuple[bytes, str], count: int) -> int:
    """Links that one member accepts in a row from a caller in another process."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    caller = spawn.Process(target=_call_in_a_row, args=(target, count, theirs), daemon=True)
    caller.start()
    accepted = ours.recv() if ours.poll(180) else 0
    caller.kill()
    caller.join(10)
    return accepted


def _call_in_a_row(target: tuple[bytes, str], count: int, pipe: "multiprocessing.connection.Connection") -> None:
    import trio

    from bench._caller import call_in_a_row

    pipe.send(trio.run(call_in_a_row, *target, count))


def main() -> None:
    options = arguments(__doc__ or "")
    size = SMALL if options.small else Size()
    figures = combine(
        [run(size) for _ in range(options.runs)],
        {"delivered_ratio": min, "channel_delivered_ratio": min, "inbound_accepted": min},
    )
    report(figures, _bars(figures, size), runs=options.runs, as_json=options.json)


def _bars(f: Figures, size: Size) -> dict[str, bool]:
    return {
        "cpu_ms_10hz <= 3 x floor": f["cpu_ms_10hz"] <= 3 * f["floor_cpu_ms_10hz"],
        "cpu_ms_10hz <= gossipsub / 15": f["cpu_ms_10hz"] <= f["gossipsub_cpu_ms"] / 15,
        "cpu_ms_load <= 2 x floor": f["cpu_ms_load"] <= 2 * f["floor_cpu_ms_load"],
        "channel_cpu_ms_load <= 6 x floor": f["channel_cpu_ms_load"] <= 6 * f["floor_cpu_ms_load"],
        "delivered_ratio = 1": f["delivered_ratio"] == 1.0,
        "frozen_peer_noticed_s <= 5": f["frozen_peer_noticed_s"] <= 5.0,
        "inbound_accepted all": f["inbound_accepted"] == size.inbound,
    }


if __name__ == "__main__":
    main()
