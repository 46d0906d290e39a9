"""Text to search words: one way for publishers, holders and askers, or nothing would match.

Lower-case words of letters and digits without stop words, plurals folded; Chinese, Japanese and Korean runs
become character bigrams (a single character stays itself).
"""

import re
import unicodedata

_RUN = re.compile(r"[a-z0-9]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_STOP = frozenset(
    "a an and any are as at be by can do does doing for from has have how i if in into is it its me my of on or our "
    "please so some that the their them there these they this to up us was we what when where which who why will "
    "with you your".split()
)


def words(text: str) -> list[str]:
    """Search words in order, repeats kept: "How are my devices?" -> ["device"]."""
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).lower()):
        if run[0] > "\u3000":
            found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        elif run not in _STOP:
            found.append(_fold(run))
    return found


def _fold(word: str) -> str:
    """Fold the commonest English endings, the same for both sides; not a stemmer."""
    for ending, put in (("sses", "ss"), ("ies", "y"), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            return word[: -len(ending)] + put
    return word
