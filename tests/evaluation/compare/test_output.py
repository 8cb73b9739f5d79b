"""What users name is shown as they wrote it."""

from rich.console import Console

from coterie.evaluation.compare.output import make_table


def test_titles_and_headings_are_no_markup() -> None:
    console = Console(width=200)
    with console.capture() as shown:
        names = "[red]set[/red]", "[bold]who[/bold]", "[/nothing]"
        console.print(make_table(names[0], names[1], [names[2]], [("line", ["[dim]1[/dim]"])]))
    for name in names:
        assert name in shown.get()
    # Cells are ours.
    assert "dim" not in shown.get()


def test_in_80_columns_labels_break_between_words_and_numbers_never() -> None:
    console = Console(width=80)
    with console.capture() as shown:
        cells = [".375 [.19 .56]"] * 4
        console.print(
            make_table("", "policy", ["a", "b", "c", "d"], [("alice and longnamed", cells)])
        )
    first, second = shown.get().splitlines()[-2:]
    assert first.split(maxsplit=2)[:2] == ["alice", "and"]
    assert first.count(".375 [.19 .56]") == 4
    assert second.split() == ["longnamed"]
