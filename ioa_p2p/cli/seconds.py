"""An option that says how long, in seconds: `type=Seconds(0.1, 60)`."""

import math
from typing import Any

import click


class Seconds(click.FloatRange):
    """A number within the bounds. click lets "nan" through, for it is neither below the one nor above the other."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no length of time.", param, ctx)
        return number
