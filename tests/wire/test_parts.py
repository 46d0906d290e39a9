"""By what of a name one may be asked for."""

import pytest

from ioa_p2p.wire.parts import is_part, single_parts, whole_parts


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("stats.outliers-fast", True),
        ("stats", True),
        ("stats.outliers", True),
        ("outliers", True),
        ("outliers-fast", True),
        ("fast", True),
        ("stat", False),
        ("outlier", False),
        ("stats.fast", False),
        ("stats.", False),
        ("", False),
    ],
)
def test_a_name_is_found_by_itself_its_beginning_and_any_whole_part(asked: str, found: bool) -> None:
    assert is_part(asked, "stats.outliers-fast") is found


def test_a_name_comes_before_its_parts_and_what_begins_it_before_the_others() -> None:
    assert whole_parts("a.b/c") == ["a.b/c", "a.b", "a", "b/c", "b", "c"]
    assert single_parts("a.b/c-d") == ["a", "b", "c", "d"]


def test_a_type_of_very_many_parts_is_found_by_few_of_them() -> None:
    name = ".".join(map(str, range(1_000)))
    assert whole_parts(name)[0] == name
    assert len(whole_parts(name)) <= 28
    assert len(single_parts(name)) == 6
