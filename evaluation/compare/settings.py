"""Settings of every comparison that samples."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from coterie.agents.team.model_specs import check_engines
from coterie.agents.team.settings import ScoringSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.cli.output_paths import check_folder
from coterie.datatypes import Validated
from coterie.datatypes.validation import PositiveShare, Seed
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.training.config.run_settings import Resamples

_FOLDERS = ("completions", "responses")
"""Folder names that comparisons use for responses."""


@dataclass(frozen=True)
class ComparisonSettings(Validated):
    """Questions to models, and scoring of their answers."""

    problems: tuple[str, ...] = ()
    """Sets of problems to score on, each named as for train.py; several are pooled."""
    questions: Annotated[int, Ge(0)] = 128
    """Questions of each set; a smaller set is taken whole. 0: the whole of each."""
    held_out: Annotated[int, Ge(0)] = 0
    """Questions of a generator, or of a set that also trains, such as deepmath; 0: as --questions
    says."""
    samples: Annotated[int, Ge(1)] = 8
    """Responses to each question."""
    temperature: Annotated[float, Ge(0)] = 1.0
    """Sampling temperature."""
    top_p: PositiveShare = 1.0
    """Nucleus sampling; 1 is off."""
    batch: Annotated[int, Ge(1)] = 256
    """Episodes that are played and stored together; a kill loses at most these."""
    resamples: Resamples = 2000
    """Bootstrap resamples over questions."""
    seed: Seed = 0
    """Seed of everything random."""
    out: Path = Path("runs/comparison")
    """Folder for responses, results.json and pictures; responses in it are used again."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models: this process, or vLLM engines in processes of their own."""
    vllm: VllmSettings = field(default_factory=VllmSettings)
    """vLLM engines; these settings need --engine vllm."""
    scoring: ScoringSettings = field(default_factory=ScoringSettings)
    """Checking of answers, and the judge of programs and free text."""

    def check_out(self) -> None:
        """Reject a folder that holds something else.

        Raises:
            UserError: one sentence that names the flag.
        """
        check_folder(self.out, "--out", files=("results.json",), folders=_FOLDERS)

    def check_engine(self, *policies: NamedPolicy) -> None:
        """Reject engines that cannot sample from these policies.

        Raises:
            UserError: one sentence that names the flag.
        """
        check_engines(self.engine, self.vllm, {policy.name: policy.settings for policy in policies})
