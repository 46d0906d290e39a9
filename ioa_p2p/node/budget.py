"""What one search may still cost: requests and bytes, counted as answers come.

may_begin ──> one more index key?        charge(rpcs, bytes) <── every answer
    └── the rest must stay enough for the last records and cards
"""

from ioa_p2p.wire import limits

KEY_RPCS_FIRST = 10.0  # of one index key, as long as none is counted
LAST_RPCS = limits.FIND_RECORDS_MAX + 2  # records, most with their cards, and a large card or two
LAST_BYTES = limits.FIND_CARDS_MAX // 3 * limits.CARD_BYTES_MAX  # few cards are as large as a card may be
DATAGRAMS_BYTES = 2 * limits.DATAGRAM_BYTES_MAX  # a request and its answer, at most


class Budget:
    """rpcs, bytes: spent so far."""

    def __init__(self, rpcs_max: int = limits.FIND_RPCS_MAX, bytes_max: int = limits.FIND_BYTES_MAX) -> None:
        self.rpcs = 0
        self.bytes = 0
        self._rpcs_max = rpcs_max
        self._bytes_max = bytes_max
        self._keys = 0
        self._keys_rpcs = 0

    def may_begin(self, under_way: int) -> bool:
        """Whether one more key may be looked up beside those under way."""
        rpcs = (under_way + 1) * self._key_rpcs
        return (
            self.rpcs + rpcs + LAST_RPCS <= self._rpcs_max
            and self.bytes + rpcs * DATAGRAMS_BYTES + LAST_BYTES <= self._bytes_max
        )

    def may_ask(self, under_way: int) -> bool:
        """Whether one more record, and its card, may be asked for beside those under way."""
        return self.rpcs + 2 * (under_way + 1) <= self._rpcs_max and self.bytes < self._bytes_max

    def charge_key(self, rpcs: int, size: int) -> None:
        self._keys += 1
        self._keys_rpcs += rpcs
        self.charge(rpcs, size)

    def charge(self, rpcs: int, size: int) -> None:
        self.rpcs += rpcs
        self.bytes += size

    @property
    def _key_rpcs(self) -> float:
        return self._keys_rpcs / self._keys if self._keys else KEY_RPCS_FIRST
