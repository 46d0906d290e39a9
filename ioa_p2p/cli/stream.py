"""Reading a long answer: hand each event on, return the result."""

from collections.abc import Callable
from typing import Any

from ioa_p2p.cli.client import Answers


def events(answers: Answers, show: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Call `show` with each event; the result at the end. Hangs up when `show` raises."""
    try:
        while True:
            try:
                event = next(answers)
            except StopIteration as end:
                return end.value
            show(event)
    finally:
        answers.close()
