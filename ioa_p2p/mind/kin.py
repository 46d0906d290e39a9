"""Words of one family: "translation", "translator" and "translating" for who looks for "translate".

    word ── family ──> what all of them begin with      word ── forms ──> further words to look them up by

Coarser than `lexicon.root`, and measured worse where roots match: used only where families say more of a text than
roots do, and to search again when nobody fits.
"""

from ioa_p2p.mind.lexicon import root

_ENDINGS = ("ion", "ment", "ing", "ise", "ize", "er", "or", "is", "ed", "at", "e", "y")
_FORMS_OF_STEM = ("e", "", "ion", "er", "ing", "ment")  # "translat": the commonest in descriptions first
_FORMS_OF_WORD = ("ing", "er", "ation")  # "document"
_STEM_CHARS_MIN = 5  # "count" and "country" are no kin
FORMS_MAX = len(_FORMS_OF_STEM)


def family(word: str) -> str:
    """ "measurement", "measuring", "measure" -> "measur". A word too short, or not of letters, is its own root."""
    stem = _shorter(word)
    if stem == word:
        return root(word)
    while (shorter := _shorter(stem)) != stem:
        stem = shorter
    return stem


def forms(word: str) -> list[str]:
    """Up to FORMS_MAX other words that its family may hold; none of a word too short or not of letters."""
    stem = _shorter(word)
    if stem == word and (len(word) < _STEM_CHARS_MIN or not word.isascii()):
        return []
    made = (stem + ending for ending in (_FORMS_OF_WORD if stem == word else _FORMS_OF_STEM))
    return [each for each in made if each != word]


def _shorter(word: str) -> str:
    """Without one ending, if enough is left."""
    if word.isascii():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _STEM_CHARS_MIN:
                return word.removesuffix(ending)
    return word
