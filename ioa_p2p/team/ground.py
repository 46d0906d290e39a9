"""What all teams of a node stand on."""

import random
from dataclasses import dataclass

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Rows
from ioa_p2p.team.life import Life
from ioa_p2p.team.queue import Queue
from ioa_p2p.team.tasks import Profile
from ioa_p2p.team.timing import Timing


@dataclass(frozen=True, slots=True)
class Ground:
    """Ready parts, the same for every team."""

    key: NodeKey
    network: bytes
    rows: Rows
    rng: random.Random
    profile: Profile
    timing: Timing
    queue: Queue
    life: Life
