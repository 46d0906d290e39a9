"""What was said and done, in as many tokens as there are: the newest whole, the older ones in brief.

line line line line line line line line
└── counted ─┘ └─ first words ─┘ └ whole ┘      by rule: no model is asked to sum up
"""

from collections.abc import Callable, Sequence

Count = Callable[[str], int]

_BRIEF_CHARS = 60


def within(texts: Sequence[str], tokens: int, count: Count, what: str = "lines") -> list[str]:
    """The same order, at most about `tokens` tokens: from the newest back whole while half of them lasts, then
    the first words, then only how many there were."""
    kept, spent = _newest(list(texts), tokens if _fits(texts, tokens, count) else tokens // 2, count)
    older = list(texts[: len(texts) - len(kept)])
    briefs, _ = _newest([_brief(text) for text in older], tokens - spent, count)
    missing = len(older) - len(briefs)
    told = [f"({missing} earlier {what} are left out)"] if missing else []
    return [*told, *briefs, *kept]


def _fits(texts: Sequence[str], tokens: int, count: Count) -> bool:
    return sum(map(count, texts)) <= tokens


def _newest(texts: list[str], tokens: int, count: Count) -> tuple[list[str], int]:
    """As many of the last ones as fit, and their tokens."""
    kept: list[str] = []
    spent = 0
    for text in reversed(texts):
        size = count(text)
        if spent + size > tokens:
            break
        kept.insert(0, text)
        spent += size
    return kept, spent


def _brief(text: str) -> str:
    """Its first words; a cut quote is closed again."""
    if len(text) <= _BRIEF_CHARS:
        return text
    cut = text[:_BRIEF_CHARS].rstrip("\\")
    return f'{cut}…"' if cut.count('"') % 2 else f"{cut}…"
