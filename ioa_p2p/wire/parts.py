"""Names made of parts, such as "text.greet": by what of them one may be asked for.

    "stats.outliers-fast" ── whole_parts ──> itself, "stats.outliers", "stats", "outliers-fast", "outliers", "fast"

Skills and types alike: who looks for "greet" means "text.greet" too, but not "greeting".
"""

import re

_SIGN = re.compile(r"[./-]+")
_PARTS_MAX = 6  # as many as a skill's name has; of a type with more only itself and what its first ones make


def whole_parts(name: str) -> list[str]:
    """Every run of whole parts, as written, each once; the name itself first, then what begins it."""
    signs = [match.span() for match in _SIGN.finditer(name)][: _PARTS_MAX - 1]
    begins, ends = [0, *(end for _, end in signs)], [*(start for start, _ in signs), len(name)]
    runs = (name[begin:end] for begin in begins for end in reversed(ends) if end > begin)
    return list(dict.fromkeys([name, *runs]))


def single_parts(name: str) -> list[str]:
    """ "metrics.samples" -> "metrics", "samples"."""
    return [part for part in _SIGN.split(name)[:_PARTS_MAX] if part]


def is_part(asked: str, name: str) -> bool:
    """Whether `asked` is the name, what begins it, or any whole part of it."""
    return asked in whole_parts(name)
