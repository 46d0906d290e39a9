"""A question with several needs wants several agents: its parts, and who covers them together.

    "the news about Tesla and a chart of its stock" ── needs ──> two clauses ── each scored by itself
    scores of the whole and of each need ── cover ──> the best for the whole, then who adds most to what is covered

No model reads the question: clauses end at full stops, commas, "and", "then" and their Chinese like. Greedy, as for
the facility location problem (Cornuejols, Fisher and Nemhauser 1977): within 1 - 1/e of the best set.
"""

import re
from collections.abc import Sequence

from ioa_p2p.wire.words import words

NEEDS_MAX = 8  # further clauses of a long question repeat what the first ones say
_WORDS_MIN = 2  # a clause of fewer words says nothing by itself
_ENDS = re.compile(
    r"[.!?;。！？；\n]+\s*"
    r"|,?\s+(?:and then|and also|and|then|as well as|also|plus|while|but)\s+"
    r"|,\s+|，|、|然后|并且|以及|同时|并|和(?=\S)",
    re.IGNORECASE,
)


def needs(question: str) -> tuple[str, ...]:
    """Its clauses, in order; none when it is but one."""
    clauses = [clause.strip() for clause in _ENDS.split(question)]
    telling = tuple(dict.fromkeys(each for each in clauses if len(set(words(each))) >= _WORDS_MIN))[:NEEDS_MAX]
    return telling if len(telling) > 1 else ()


def cover(whole: Sequence[float], by_need: Sequence[Sequence[float]], count: int) -> list[int]:
    """Numbers of up to `count` agents that together cover the needs, the most useful first.

    whole: each agent's score for the whole question. by_need: for each need, each agent's score for it.
    """
    worth = [score + max((need[number] for need in by_need), default=0.0) for number, score in enumerate(whole)]
    chosen: list[int] = []
    while len(chosen) < min(count, len(whole)):
        left = (number for number in range(len(whole)) if number not in chosen)
        chosen.append(max(left, key=lambda number: worth[number] + _added(number, by_need, chosen)))
    return chosen


def _added(number: int, by_need: Sequence[Sequence[float]], chosen: Sequence[int]) -> float:
    """By how much this one serves the needs better than those chosen already. Nothing is chosen: all alike."""
    if not chosen:
        return 0.0
    return sum(max(0.0, need[number] - max(need[each] for each in chosen)) for need in by_need)
