"""Text of an answer while it is sampled."""

from hypothesis import given
from hypothesis import strategies as st

from coterie.agents.sampling.detokenizer import Detokenizer
from coterie.envs.bytes_codec import BytesCodec

CODEC = BytesCodec()


def pieces_of(ids: list[int]) -> list[str]:
    pieces = Detokenizer(CODEC.decode)
    return [*(pieces.add([i]) for i in ids), pieces.rest()]


def test_no_piece_ends_within_a_character() -> None:
    # é is C3 A9, € is E2 82 AC.
    assert pieces_of(list("aé€b".encode())) == ["a", "", "é", "", "", "€", "b", ""]
    # An answer that breaks off within a character ends in one replacement.
    assert pieces_of(list("a€".encode())[:-1]) == ["a", "", "", "\ufffd"]
    # A byte that begins no character is shown with the next one.
    assert pieces_of([0xFF, *b"a", 256]) == ["", "\ufffda", "", ""]


def test_a_space_that_is_dropped_at_the_start_stays_within() -> None:
    """As SentencePiece decodes: " the", but "the" where a text begins."""
    pieces = Detokenizer(lambda ids: "".join((" the", " end", "s")[i] for i in ids).lstrip(" "))
    assert [pieces.add([i]) for i in (0, 1, 2, 0)] == ["the", " end", "s", " the"]


@given(st.binary(max_size=12).map(list) | st.sampled_from("aé€🎉").map(lambda c: [*c.encode()]))
def test_pieces_are_the_whole(ids: list[int]) -> None:
    assert "".join(pieces_of(ids)) == CODEC.decode(ids)
