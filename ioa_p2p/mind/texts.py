"""The words that an agent and its skills can be found by."""

from ioa_p2p.wire.records import Card, Skill
from ioa_p2p.wire.roster import SkillBrief
from ioa_p2p.wire.words import words


def skill_words(skill: Skill | SkillBrief, agent: str) -> list[str]:
    """agent: its agent's name and description."""
    more = (*skill.tags, *skill.examples) if isinstance(skill, Skill) else ()
    return words(" ".join((skill.name, skill.description, agent, *more)))


def card_words(card: Card) -> list[str]:
    return words(f"{card.name} {card.description}") + [w for skill in card.skills for w in skill_words(skill, "")]
