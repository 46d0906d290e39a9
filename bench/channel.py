"""`python -m bench.channel [--json] [--runs N] [--small]`: what the team channel itself costs, without disk and links.

One member of ten says 1 KiB lines, another hears them: CPU-us of the pure machine. `say_cpu_us` per line (encoded,
signed, chained, nine Sends), `hear_cpu_us` per line at one member (decoded, verified, chained, ordered, told),
`delivery_cpu_us` = a ninth of saying + hearing; `verify_cpu_us` is the signature check alone, in the same run.
"""

import random
import time
from collections.abc import Callable

from bench._measure import Figures, arguments, combine, report
from ioa_p2p.crypto.keys import NodeKey, verify
from ioa_p2p.effects import Effect, Emit, Now, Send
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Say
from ioa_p2p.gossip.events import Said
from ioa_p2p.gossip.machine import GossipMachine
from ioa_p2p.wire.gossip import Entries, Frontier, Head, Held

MEMBERS = 10
LINE = bytes(1024)
ACK_EVERY = 64  # lines of one acknowledgement under load
TEAM, NETWORK = bytes(16), bytes(16)
NOW = Now(1_800_000_000.0, 1_000.0)
KEYS = tuple(NodeKey(bytes([number]) * 32) for number in range(MEMBERS))


def run(lines: int) -> Figures:
    speaker, listener = _member(0), _member(1)
    said: list[Entries] = []
    say_us = _cpu_us(lambda: said.extend(_say(speaker, lines)), lines)
    told: list[Said] = []
    hear_us = _cpu_us(lambda: told.extend(_hear(listener, said)), lines)
    assert len(told) == lines
    signature = KEYS[0].sign(LINE)
    verify_us = _cpu_us(lambda: [verify(KEYS[0].node, LINE, signature) for _ in said], lines)
    return {
        "say_cpu_us": say_us,
        "hear_cpu_us": hear_us,
        "delivery_cpu_us": say_us / (MEMBERS - 1) + hear_us,
        "verify_cpu_us": verify_us,
    }


def _member(number: int) -> GossipMachine:
    """A member with a live link to all others, who told that they have such links too."""
    machine = GossipMachine(KEYS[number], NETWORK, lambda space: (), random.Random(number))
    machine.handle_command(NOW, OpenChannel(TEAM, tuple(key.node for key in KEYS)))
    heads = tuple(Head(key.node, 0, bytes(8), True) for key in KEYS)
    for key in KEYS:
        if key is not KEYS[number]:
            machine.handle_command(NOW, LinkPeer(key.node, True))
            machine.handle_message(NOW, key.node, Frontier(TEAM, heads))
    return machine


def _say(machine: GossipMachine, lines: int) -> list[Entries]:
    said: list[Entries] = []
    for seq in range(1, lines + 1):
        effects = machine.handle_command(NOW, Say(TEAM, "text", LINE))
        said.append(_first_sent(effects))
        if seq % ACK_EVERY == 0:
            for key in KEYS[1:]:
                machine.handle_message(NOW, key.node, Held(TEAM, ((key.node, KEYS[0].node, seq),)))
    return said


def _first_sent(effects: list[Effect]) -> Entries:
    return next(effect.message for effect in effects if isinstance(effect, Send))


def _hear(machine: GossipMachine, said: list[Entries]) -> list[Said]:
    told: list[Said] = []
    for message in said:
        effects = machine.handle_message(NOW, KEYS[0].node, message)
        told += [effect.event for effect in effects if isinstance(effect, Emit)]
    return told


def _cpu_us(work: Callable[[], object], times: int) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e6 / times


def main() -> None:
    options = arguments(__doc__.splitlines()[0])
    figures = combine([run(200 if options.small else 3_000) for _ in range(options.runs)], {})
    report(figures, {}, runs=options.runs, as_json=options.json)


if __name__ == "__main__":
    main()
