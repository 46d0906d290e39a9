"""What an agent can be found by, as two texts for a full-text index; and a query as an expression over them.

    record, card ──> text  "chart bar memory ..."    the words of names, descriptions, tags, examples
                └──> keys  "6ad1... 90fe..."         skill:stats, skill:stats.outliers, out:T, in:T, word:home, hashed

Keys are texts as agents are published under (docs/wire.md, "Index keys"), but that `word:` means a word of a tag. They
are hashed into words of their own, so that a type may be any text.
"""

from collections.abc import Iterator, Sequence

from ioa_p2p.wire import ids
from ioa_p2p.wire.parts import whole_parts
from ioa_p2p.wire.records import AgentRecord, Card, Skill
from ioa_p2p.wire.words import words

_TOKEN_BYTES = 8  # of a key's hash: two of 10,000 agents' keys never meet


def text_of(record: AgentRecord, card: Card | None) -> str:
    """Its search words, joined by spaces. Without the card only names are known."""
    if card is None:
        return " ".join(words(" ".join((record.agent, *record.skills))))
    said = [card.name, card.description]
    for skill in card.skills:
        said += [skill.name, skill.description, *skill.tags, *skill.examples]
    return " ".join(words("\n".join(said)))


def keys_of(record: AgentRecord, card: Card | None) -> str:
    """The tokens of what a filter may ask for, joined by spaces, each once."""
    skills = card.skills if card is not None else ()
    names = dict.fromkeys((*record.skills, *(skill.name for skill in skills)))
    facts = [fact for name in names for fact in _skill_facts(name)]
    facts += [fact for skill in skills for fact in _type_facts(skill)]
    return " ".join(token(fact) for fact in dict.fromkeys(facts))


def token(key: str) -> str:
    """One key ("skill:stats", "out:stats.report", "in:metrics", "word:home") as a word that stands in no text."""
    return ids.blake(key.encode(), _TOKEN_BYTES).hex()


def expression(asked: Sequence[str], keys: Sequence[str]) -> str:
    """For FTS5's MATCH: any of the words, all of the keys."""
    parts = [f"keys : {token(key)}" for key in keys]
    if asked:
        parts.insert(0, "text : (" + " OR ".join(f'"{word}"' for word in asked) + ")")
    return " AND ".join(parts)


def sayable(word: str) -> bool:
    """Whether it can be a word of a text, and so stand in an expression."""
    return word.isprintable() and '"' not in word and " " not in word


def _skill_facts(name: str) -> Iterator[str]:
    """A skill is found by its own name and by any whole part of it."""
    yield from (f"skill:{part}" for part in whole_parts(name))


def _type_facts(skill: Skill) -> Iterator[str]:
    """Likewise a type, without its mark for "all there are"."""
    for kind, types in (("in", skill.inputs), ("out", skill.outputs)):
        yield from (f"{kind}:{part}" for name in types for part in whole_parts(name.removesuffix("*")))
    yield from (f"word:{word}" for tag in skill.tags for word in words(tag))
