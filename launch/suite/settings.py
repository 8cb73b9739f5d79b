"""What ``benchmark.py --agents ... --suite ...`` can be told."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agents.engine.settings import VllmSettings
from envs.corea_deferral.settings import ThresholdSource


@dataclass(frozen=True)
class SuiteComparison:
    """Any agents on any suites: alone, by vote, as a team, in a cascade, and what bounds them.

    An agent is NAME=WHAT: a run directory (the model it trained under that name), a checkpoint, an
    adapter, a hub id, tiny:NAME, scripted:..., server:... or pool:.... Name cheap and weak ones
    first: cascade and routing ask the first one first, and the last one where they must.
    """

    agents: tuple[str, ...] = ()
    """Who is compared, NAME=WHAT each."""
    suite: tuple[str, ...] = ("core",)
    """core, corea, eapo, math, or a JSON file with a suite's fields; several one after another."""
    problems: tuple[str, ...] = ()
    """Sets of problems in place of the suites' own, each named as for train.py."""
    questions: int = 128
    """Questions of each set."""
    samples: int = 8
    """Completions of every agent to each question."""
    temperature: float = 1.0
    """Sampling temperature."""
    top_p: float = 1.0
    """Nucleus filter; 1 is off."""
    max_new_tokens: int = 0
    """Longest answer; 0: what the suite's environment allows."""
    workflow: bool = True
    """Where the suite has one, also let every agent answer after all others have."""
    verifier: str = ""
    """Who judges every answer, by the name of an agent or as NAME=WHAT: a row of the answers that
    it trusts most. Empty: nobody."""
    verifier_tokens: int = 1024
    """Longest judgement."""
    threshold: ThresholdSource = "accuracy"
    """How the cascade's threshold on each half of the questions is chosen on the other half."""
    fixed_threshold: float = 0.5
    """The threshold of --threshold fixed."""
    accuracy_loss: float = 0.01
    """Accuracy against the last agent that --threshold accuracy may give up."""
    cost_share: float = 0.8
    """Share of the last agent's cost that --threshold cost may take."""
    prices: tuple[str, ...] = ()
    """Money per million prompt and sampled tokens: NAME=IN,OUT for every agent, or a JSON file
    {"NAME": [IN, OUT]}."""
    batch: int = 256
    """Completions in flight, and stored together: what a kill can cost at most."""
    resamples: int = 2000
    """Bootstrap resamples over questions."""
    seed: int = 0
    """Everything random derives from it."""
    out: Path = Path("runs/suite")
    """Where completions, results.json and pictures go; completions found there are used again."""
    engine: Literal["local", "vllm"] = "local"
    """What samples from models: this process, or vLLM in processes of its own."""
    vllm: VllmSettings = field(default_factory=VllmSettings)
    """How engines are run."""
