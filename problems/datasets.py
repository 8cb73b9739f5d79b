"""Public data sets by short name: where they lie, which split is for what, how rows are read."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class HubSet:
    """One data set on the hub."""

    repo: str
    """Its id on the hub, or a local folder in the hub's layout."""
    form: str | None = None
    """Name of a :class:`problems.formats.Format`; None recognises it from the first row."""
    configs: tuple[str | None, ...] = (None,)
    """Configurations, read one after another."""
    train: str | None = "train"
    """Split to train on; None where the set is for evaluation only."""
    eval: str | None = "test"
    """Split to evaluate on; the same name as ``train`` where there is only one split."""
    train_percent: int | None = None
    """Where one split serves both: the share (in percent) that trains. None leaves the split
    whole and the evaluation problems are held out of it."""
    gated: bool = False
    """Whether the hub asks for terms to be accepted."""
    revision: str | None = None
    """Commit to read; None is the newest."""


_MATH_SUBJECTS = (
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory",
    "prealgebra", "precalculus",
)  # fmt: skip

HUB_SETS: Mapping[str, HubSet] = {
    "gsm8k": HubSet("openai/gsm8k", "gsm8k", ("main",)),
    "math": HubSet("EleutherAI/hendrycks_math", "problem+solution", _MATH_SUBJECTS),
    # CoRe's MATH: 80:20 of all 12,500 problems, not the official split (arXiv:2601.21600).
    "math-8020": HubSet(
        "qwedsacf/competition_math", "problem+solution", eval="train", train_percent=80
    ),
    "math500": HubSet("HuggingFaceH4/MATH-500", "problem+answer", train=None),
    "aime-1983-2025": HubSet(
        "TianHongZXY/aime-1983-2025", "problem+answer", train="test", train_percent=80
    ),
    "aime-1983-2024": HubSet(
        "gneubig/aime-1983-2024", "Question+Answer", eval="train", train_percent=80
    ),
    "aime24": HubSet("math-ai/aime24", "problem+solution", train=None),
    "aime25": HubSet("math-ai/aime25", "problem+answer", train=None),
    "gpqa-main": HubSet(
        "Idavidrein/gpqa", "gpqa", ("gpqa_main",), eval="train", train_percent=80, gated=True
    ),
    "gpqa-diamond": HubSet(
        "Idavidrein/gpqa", "gpqa", ("gpqa_diamond",), train=None, eval="train", gated=True
    ),
    "gpqa-extended": HubSet(
        "Idavidrein/gpqa", "gpqa", ("gpqa_extended",), eval="train", train_percent=80, gated=True
    ),
    "deepmath": HubSet("zwhe99/DeepMath-103K", "final_answer", eval="train"),
    "olympiadbench": HubSet(
        "Hothan/OlympiadBench", "final_answer", ("OE_TO_maths_en_COMP",), train=None, eval="train"
    ),
    "commonsenseqa": HubSet("tau/commonsense_qa", "commonsenseqa", eval="validation"),
    "medmcqa": HubSet("openlifescienceai/medmcqa", "medmcqa", eval="validation"),
    "dapo-17k": HubSet("BytedTsinghua-SIA/DAPO-Math-17k", "dapo", eval="train"),
    "dapo-17k-processed": HubSet(
        "open-r1/DAPO-Math-17k-Processed", "prompt+solution", ("en",), eval="train"
    ),
    "mmlu": HubSet("cais/mmlu", "mmlu", ("all",), train=None),
    "hotpotqa": HubSet("hotpotqa/hotpot_qa", "hotpotqa", ("distractor",), eval="validation"),
    "simpleqa": HubSet("basicv8vc/SimpleQA", "simpleqa", train=None),
    "humaneval": HubSet("openai/openai_humaneval", "humaneval", train=None),
    "humanevalplus": HubSet("evalplus/humanevalplus", "humaneval", train=None),
    "mbppplus": HubSet("evalplus/mbppplus", "mbppplus", train=None),
    "hle": HubSet("cais/hle", "hle", train=None, gated=True),
}

ELSEWHERE: Mapping[str, str] = {
    "aimo2": (
        "aimo2 is a competition file: accept the rules at "
        "https://www.kaggle.com/competitions/ai-mathematical-olympiad-progress-prize-2, save "
        "reference.csv as JSONL with the columns id, problem, answer, and name that file"
    ),
}
"""Sets that no loader may fetch, and what to do."""

# Sets to train on, sets that share problems with them by their making, and how.
_AIME = ("aime-1983-2025", "aime-1983-2024")
_GPQA = ("gpqa-main", "gpqa-extended")
_DAPO = ("dapo-17k", "dapo-17k-processed")
_OVERLAPS = (
    (("math-8020",), ("math", "math500"), "math-8020 is made of all of MATH, test split included"),
    (_AIME, (*_AIME, "aime24", "aime25"), "all contests up to the last year stand in it"),
    (_GPQA, (*_GPQA, "gpqa-diamond"), "extended holds main, and main holds diamond"),
    (_DAPO, _DAPO, "both are the same problems"),
)


def known_overlap(train: str, evaluation: str) -> str | None:
    """What is known of two different sets that share problems by their making; None without."""
    first, second = train.partition("?")[0], evaluation.partition("?")[0]
    for trains, measures, sentence in _OVERLAPS:
        if first != second and first in trains and second in measures:
            return sentence
    return None
