import numpy as np
import pytest

from coterie.datatypes import role_of
from coterie.envs.bytes_codec import END, BytesCodec
from coterie.envs.contract import roles_of
from coterie.envs.spaces import TextSpace, TokenSpace


def test_a_text_space_asks_for_a_string_and_its_length_only() -> None:
    space = TextSpace(4)
    assert space.contains("é∑\n\ud800")
    assert not space.contains("12345")
    assert not space.contains(b"12")
    assert not space.contains(None)


@pytest.mark.parametrize(
    ("ids", "inside"),
    [
        (np.array([0, 6], dtype=np.int64), True),
        (np.zeros(0, dtype=np.int64), True),
        (np.array([7], dtype=np.int64), False),
        (np.array([-1], dtype=np.int64), False),
        (np.array([1], dtype=np.int32), False),
        (np.array([[1]], dtype=np.int64), False),
        (np.zeros(4, dtype=np.int64), False),
        ([1, 2], False),
    ],
)
def test_a_token_space_holds_short_arrays_of_ids(ids: object, inside: bool) -> None:
    assert TokenSpace(7, max_length=3).contains(ids) is inside


@pytest.mark.parametrize("space", [TextSpace(), TokenSpace(11)])
def test_samples_depend_on_the_seed_and_lie_in_the_space(space: TextSpace | TokenSpace) -> None:
    space.seed(3)
    first = [space.sample() for _ in range(20)]
    assert all(space.contains(sample) for sample in first)
    space.seed(3)
    again = [space.sample() for _ in range(20)]
    space.seed(4)
    other = [space.sample() for _ in range(20)]
    assert list(map(str, first)) == list(map(str, again))
    assert list(map(str, first)) != list(map(str, other))


def test_bytes_codec_round_trips_and_ends_turns() -> None:
    codec = BytesCodec()
    assert codec.open("né") == [110, 195, 169]
    assert codec.decode(codec.open("né 漢 🙂")) == "né 漢 🙂"
    assert codec.follow("a", ended=False) == [END, 97]
    assert codec.follow("a", ended=True) == [97]
    assert codec.extend("b") == [98]
    # A stray byte, the end mark, and ids that are none.
    assert codec.decode([195, 97, END, -5, 9999]) == "\ufffda"
    assert codec.count("né") == 3
    assert codec.count("\ud800") == 1


@pytest.mark.parametrize(
    ("limit", "head", "tail"),
    # "aéb漢" is 1 + 2 + 1 + 3 bytes.
    [(0, "", ""), (1, "a", ""), (2, "a", ""), (3, "aé", "漢"), (4, "aéb", "b漢"), (5, "aéb", "b漢"),
     (6, "aéb", "éb漢"), (7, "aéb漢", "aéb漢"), (-1, "", "")],
)  # fmt: skip
def test_bytes_codec_keeps_whole_characters(limit: int, head: str, tail: str) -> None:
    codec = BytesCodec()
    assert codec.truncate("aéb漢", limit) == head
    assert codec.truncate("aéb漢", limit, keep="tail") == tail


def test_roles_stand_before_the_last_underscore() -> None:
    assert role_of("alice_0") == "alice"
    assert role_of("big_model_12") == "big_model"
    assert role_of("solo") == "solo"
    assert roles_of(["b_0", "a_0", "b_1"]) == ("b", "a")
