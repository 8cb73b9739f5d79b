"""Benchmarks, baselines and tables of the papers."""

from coterie.cli.extras import Comparison, Extra

EXTRA = Extra(
    "papers",
    comparisons={
        "corea": Comparison(
            "coterie.extras.papers.corea",
            "CoreaComparison",
            "compare",
            "small models, cascades with a large one, and controls",
        ),
        "eapo": Comparison(
            "coterie.extras.papers.eapo",
            "EapoComparison",
            "compare",
            "a policy alone, with experts, after training with them",
        ),
        "distill": Comparison(
            "coterie.extras.papers.distill",
            "DistillSettings",
            "distill",
            "a policy trained on an expert's solutions, for eapo",
        ),
        "sweep": Comparison(
            "coterie.extras.papers.sweep",
            "Sweep",
            "sweep",
            "a paper's table in miniature, trained with several seeds",
            "TABLE",
        ),
    },
)
