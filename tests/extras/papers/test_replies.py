"""Which of the stored replies experts are made to say again."""

from coterie.extras.papers.replies import choose_replies


def records(*wrong: int) -> list[dict[str, object]]:
    return [{"text": str(place), "correct": int(place not in wrong)} for place in range(8)]


def said(stored: list[dict[str, object]], pick: str, seed: int) -> list[int]:
    return [int(record["text"]) for record in choose_replies(stored, pick, 3, seed)]  # type: ignore[arg-type]


def test_three_wrong_ones_where_there_are_three() -> None:
    stored = records(1, 4, 5, 7)
    drawn = [said(stored, "wrong", seed) for seed in range(200)]
    assert {place for places in drawn for place in places} == {1, 4, 5, 7}
    assert all(len(set(places)) == 3 for places in drawn)
    assert said(stored, "wrong", 5) == drawn[5]


def test_all_are_drawn_from_where_fewer_are_wrong() -> None:
    # Appendix E of the paper: "if fewer than 3 are incorrect, we sample from all 32".
    stored = records(1, 4)
    drawn = [said(stored, "wrong", seed) for seed in range(200)]
    assert {place for places in drawn for place in places} == set(range(8))
    assert drawn == [said(stored, "any", seed) for seed in range(200)]


def test_fewer_replies_than_experts() -> None:
    two = records()[:2]
    assert sorted(said(two, "any", 0)) == [0, 1]
    assert said([], "wrong", 0) == []
