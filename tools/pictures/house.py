"""The folders of the repository: the layers of the core, and the extras that it does without."""

from pictures.svg import Picture

_LAYERS = (
    ("train.py  benchmark.py", "the loop, and what compares", "plain"),
    ("evaluation/", "metrics, report, comparisons", "grey"),
    ("training/", "session, config, run directory", "grey"),
    ("envs/", "episodes of every protocol", "violet"),
    ("rewards/  experts/  problems/", "what is paid, asked and solved", "violet"),
    ("agents/", "models, sampling, engines, teams", "orange"),
    ("algorithms/  rollouts/", "credit and losses; episodes played", "green"),
    ("cli/", "flags, config files, plug-ins", "blue"),
    ("datatypes/", "the types of all others", "plain"),
)
_EXTRAS = (
    ("cluster/", "processes, Ray"),
    ("games/", "games of others"),
    ("ops/", "doctor, plan, track"),
    ("papers/", "their benchmarks"),
    ("programs/", "run under guard"),
)


def house() -> Picture:
    """Core and extras, and who imports whom."""
    draw = Picture("The core, and its extras", 640, 640)
    draw.words(24, 66, "The core: imports only point down", "soft", 14)
    for place, (folders, what, tone) in enumerate(_LAYERS):
        draw.card(24, 80 + 60 * place, 330, [f"${folders}", what], tone, height=54)
    draw.words(420, 66, "extras/: each may be absent", "soft", 14)
    for place, (folder, what) in enumerate(_EXTRAS):
        y = 80 + 60 * place
        draw.card(420, y, 196, [f"${folder}", what], "orange", height=54)
        draw.arrow((420, y + 27), (356, y + 27), tone="orange", sideways=True)
    foot = 80 + 60 * (len(_LAYERS) - 1)
    draw.card(420, foot, 196, ["$pyproject.toml", "entry points"], "plain", height=54)
    draw.arrow((518, 80 + 60 * len(_EXTRAS)), (518, foot), dashed=True)
    draw.arrow((420, foot + 27), (356, foot + 27), dashed=True, sideways=True)
    draw.words(508, foot - 40, "is registered", "soft end", 14)
    return draw
