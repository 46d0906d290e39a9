"""Search words: what publishers and askers write differently must come out alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.wire.words import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How are my devices?", ["device"]),
        ("Queries, classes; status of a campus", ["query", "class", "status", "campus"]),
        ("Analysis is analysis", ["analysis", "analysis"]),
        ("ＣＰＵ load 90%", ["cpu", "load", "90"]),
        ("内存使用 report", ["内存", "存使", "使用", "report"]),
        ("中", ["中"]),
        ("", []),
        ("!?\n\t", []),
    ],
)
def test_words_are_folded_the_same_way_for_all(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
def test_words_of_words_are_the_same_words_or_shorter(text: str) -> None:
    """Any text is accepted, and nothing but search words comes out."""
    for word in words(text):
        assert word == word.lower()
        assert not any(character.isspace() for character in word)


@given(st.text(), st.text())
def test_case_and_separators_do_not_matter(one: str, other: str) -> None:
    ascii_one = one.encode("ascii", "ignore").decode()
    assert words(ascii_one.upper()) == words(ascii_one.lower())
    assert words(f"{one}. {other}") == words(one) + words(other)
