"""What users name is shown as they wrote it."""

from rich.console import Console

from coterie.comparison.output import make_table


def test_titles_and_headings_are_no_markup() -> None:
    console = Console(width=200)
    with console.capture() as shown:
        names = "[red]set[/red]", "[bold]who[/bold]", "[/nothing]"
        console.print(make_table(names[0], names[1], [names[2]], [("line", ["[dim]1[/dim]"])]))
    for name in names:
        assert name in shown.get()
    # Cells are ours.
    assert "dim" not in shown.get()
