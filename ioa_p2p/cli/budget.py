"""An option that says what a goal may cost: `--budget tokens=20000,money=0.25,calls=30,agents=8`."""

from decimal import Decimal, DecimalException
from typing import Any

import click

from ioa_p2p.wire import limits

MILLION = 1_000_000


class Budget(click.ParamType[dict[str, int]]):
    """Kind -> whole number, as the node takes it: money in millionths of its unit, so that sums are exact."""

    name = "KIND=AMOUNT,..."
    KINDS = ("tokens", "money", "calls", "agents")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value  # pyright: ignore[reportUnknownVariableType]
        amounts: dict[str, int] = {}
        for part in str(value).split(","):
            kind, _, amount = (word.strip() for word in part.partition("="))
            if kind not in self.KINDS or kind in amounts:
                self.fail(f"{part!r}: say each of {', '.join(self.KINDS)} once at most, as KIND=AMOUNT.", param, ctx)
            amounts[kind] = self._amount(kind, amount, param, ctx)
        return amounts

    def _amount(self, kind: str, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        scale = MILLION if kind == "money" else 1
        try:
            amount = Decimal(text) * scale
        except DecimalException:
            amount = Decimal(-1)
        if not amount.is_finite() or not 0 <= amount <= limits.AMOUNT_MAX or amount != amount.to_integral_value():
            wanted = "a number with at most six decimals" if kind == "money" else "a whole number"
            self.fail(f"{kind}={text[:40]}: {wanted}, from 0 to {limits.AMOUNT_MAX // scale}.", param, ctx)
        return int(amount)


def cost_text(cost: dict[str, int]) -> str:
    """What was spent, for people; empty for nothing."""
    parts = [f"{cost[kind]:,} {kind}" for kind in ("tokens", "calls") if cost.get(kind)]
    if cost.get("money"):
        parts.insert(-1 if cost.get("calls") else len(parts), f"{Decimal(cost['money']) / MILLION:f} money")
    return ", ".join(parts)
