"""Settings of every comparison that samples, and their checks."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from coterie.agents.team.model_specs import check_engines
from coterie.agents.team.settings import ScoringSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.cli.output_paths import check_folder
from coterie.datatypes import UserError, check_literals
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.training.config.run_settings import check_resamples, check_temperature

_FOLDERS = ("completions", "responses")
"""Folder names that comparisons use for responses."""


@dataclass(frozen=True)
class Asking:
    """Questions to models, and scoring of their answers."""

    problems: tuple[str, ...] = ()
    """Sets of problems to score on, each named as for train.py; several are pooled."""
    questions: int = 128
    """Questions of each set; a smaller set is taken whole. 0: the whole of each."""
    held_out: int = 0
    """Questions of a generator, or of a set that also trains, such as deepmath; 0: as --questions
    says."""
    samples: int = 8
    """Responses to each question."""
    temperature: float = 1.0
    """Sampling temperature."""
    top_p: float = 1.0
    """Nucleus sampling; 1 is off."""
    batch: int = 256
    """Episodes that are played and stored together; a kill loses at most these."""
    resamples: int = 2000
    """Bootstrap resamples over questions."""
    seed: int = 0
    """Seed of everything random."""
    out: Path = Path("runs/comparison")
    """Folder for responses, results.json and pictures; responses in it are used again."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models: this process, or vLLM engines in processes of their own."""
    vllm: VllmSettings = field(default_factory=VllmSettings)
    """vLLM engines; these settings need --engine vllm."""
    scoring: ScoringSettings = field(default_factory=ScoringSettings)
    """Checking of answers, and the judge of programs and free text."""

    def __post_init__(self) -> None:
        check_literals(self, "--")

    def check(self, *positive: str) -> None:
        """Reject invalid settings; ``positive`` names further settings that must be at least 1.

        Raises:
            UserError: one sentence that names the flag.
        """
        for name in ("questions", "held_out"):
            if getattr(self, name) < 0:
                raise UserError(f"--{name.replace('_', '-')} must not be negative")
        check_positive(self, "samples", "batch", "resamples", *positive)
        check_temperature(self.temperature)
        if not 0 < self.top_p <= 1:
            raise UserError("--top-p must be above 0 and at most 1")
        check_folder(self.out, "--out", files=("results.json",), folders=_FOLDERS)

    def check_engine(self, *policies: NamedPolicy) -> None:
        """Reject engines that cannot sample from these policies.

        Raises:
            UserError: one sentence that names the flag.
        """
        check_engines(self.engine, self.vllm, {policy.name: policy.settings for policy in policies})


def check_positive(settings: Any, *names: str) -> None:
    """Raises:
    UserError: one of these settings is below 1, or there are too many resamples.
    """
    for name in names:
        if getattr(settings, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1")
    if "resamples" in names:
        check_resamples(settings.resamples, "--resamples")
