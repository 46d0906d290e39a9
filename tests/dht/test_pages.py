"""Whose pages are turned next."""

import random

from ioa_p2p.dht.pages import ByLot, ByMerit
from ioa_p2p.wire.dht import Contact, Found, pack_cursor, unpack_cursor

HOLDERS = [Contact(bytes([number]) * 32, "127.0.0.1", 5_000 + number) for number in range(8)]
DICE = random.Random(1)


def page(frames: int = 4, cursor: bytes = b"") -> Found:
    return Found(1, False, bytes(8), (b"frame",) * frames, (), cursor)


def opened(book, frames: tuple[int, ...] = (4,) * 8):
    for holder, count in zip(HOLDERS, frames, strict=False):
        book.opened(holder, page(count, pack_cursor(7, count)))
    return book


def places(turns) -> list[int]:
    return [unpack_cursor(cursor)[1] for _, cursor in turns]


def test_three_holders_drawn_once_are_read_on_each_by_its_own_cursor():
    book = opened(ByLot(100))
    first = book.next(HOLDERS, False, 10, DICE)
    assert len({holder for holder, _ in first}) == 3
    for number, (holder, _) in enumerate(first):
        book.turned(holder, page(4, pack_cursor(7, 8 + number)))
    second = book.next(HOLDERS, False, 10, DICE)
    assert [holder for holder, _ in second] == [holder for holder, _ in first]
    assert places(second) == [8, 9, 10]


def test_who_was_drawn_differs_from_reader_to_reader():
    draws = {tuple(holder for holder, _ in opened(ByLot(100)).next(HOLDERS, False, 1, DICE)) for _ in range(20)}
    assert len(draws) > 10


def test_holders_of_a_crowded_key_are_all_read_on():
    assert len(opened(ByLot(100)).next(HOLDERS, True, 10, DICE)) == 8


def test_a_holder_that_came_to_its_end_is_not_asked_again():
    book = opened(ByLot(100), (4, 4))
    turns = book.next(HOLDERS, False, 10, DICE)
    book.turned(turns[0][0], page())
    book.turned(turns[1][0], page(4, pack_cursor(7, 8)))
    assert [holder for holder, _ in book.next(HOLDERS, False, 10, DICE)] == [turns[1][0]]


def test_only_those_near_the_key_are_read_on():
    assert {holder for holder, _ in opened(ByLot(100)).next(HOLDERS[:2], True, 10, DICE)} == set(HOLDERS[:2])


def test_who_has_enough_turns_no_more_pages():
    assert opened(ByLot(100)).next(HOLDERS, False, 100, DICE) == []
    assert opened(ByMerit(4)).next(HOLDERS, False, 0, DICE) == []


def test_by_merit_each_page_comes_from_another_holder_and_begins_where_the_last_ended():
    """Of twelve nine are wanted by merit; a page brings three."""
    book = opened(ByMerit(12), (5, 4, 5))
    turns = book.next(HOLDERS, False, 4, DICE)
    assert [holder for holder, _ in turns] == HOLDERS[:2]
    assert places(turns) == [3, 6]
    for holder, _ in turns:
        book.turned(holder, page(4, pack_cursor(7, 8)))
    assert book.next(HOLDERS, False, 8, DICE) == []


def test_a_page_that_did_not_come_is_asked_of_somebody_else():
    book = opened(ByMerit(12), (4, 4, 4))
    (_, missed), _ = book.next(HOLDERS, False, 4, DICE)
    book.missed(missed)
    assert book.next(HOLDERS, False, 4, DICE) == [(HOLDERS[2], missed)]


def test_a_holder_with_a_senseless_cursor_is_not_read_on():
    book = ByMerit(12)
    book.opened(HOLDERS[0], page(4, b"abc"))
    assert book.next(HOLDERS, False, 8, DICE) == []
