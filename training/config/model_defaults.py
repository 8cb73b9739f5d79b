"""Default settings for models that are not tiny, as data.

The defaults of environments (``EnvSpec.defaults``) suit models of an eighth of a million weights,
which cannot read instructions, answer in 48 tokens, and learn at rates that break larger models. If
any model of a run is not tiny, these tables and the environment's ``EnvSpec.larger`` replace them.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from coterie import envs
from coterie.agents.models.size import count_weights, is_tiny
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import LearnerSettings
from coterie.cli.arguments import flags_in
from coterie.datatypes import role_of
from coterie.envs.presets import published
from coterie.evaluation import evaluation_of
from coterie.experts.naming import is_player
from coterie.problems.split import HELD_OUT
from coterie.training.config.serialize import flat, nested, override, to_plain
from coterie.training.config.train_settings import TrainSettings, replicas_of, token_limit
from coterie.training.warmup import WarmupSettings

Values = Mapping[str, Any]
"""Dotted name -> value."""

EVERYWHERE: Values = {
    "problems.train": "gsm8k",
    "rollout.problems_per_step": 8,
    "run.steps": 200,
}
"""For every environment; its ``EnvSpec.larger`` or else ``EnvSpec.defaults`` overrides them."""

SMALL_BELOW = 1e9
SMALL: Values = {
    "env.max_new_tokens": 256,
    "rollout.problems_per_step": 4,
    "run.steps": 40,
}
"""For runs in which every model that learns has fewer weights than :data:`SMALL_BELOW`. Answers of
Qwen2.5-Coder 0.5B to word problems have 200 tokens, and 100 once it has learned to end them;
``solo`` with these values takes an hour of two cores (measured here). ``EnvSpec.small`` adds to
them."""

RATES: tuple[tuple[float, float, float], ...] = (
    (5e8, 2e-4, 1e-5),
    (1e9, 2e-4, 5e-6),
    (2e9, 1e-4, 5e-6),
    (1e10, 5e-5, 2e-6),
    (math.inf, 5e-5, 1e-6),
)
"""(number of weights below which the row holds, learning rate of LoRA, that of full weights).

verifiers (docs/training.md): 1e-5 to 1e-4 for LoRA, 1e-6 to 1e-5 for full weights. TRL, "LoRA
Without Regret": 5e-5 for LoRA on .6 billion weights, 1e-6 for full weights of 3 billion. Schulman
et al. 2025 (doi:10.64434/tml.20250929): LoRA wants ten times the rate of full weights. Adapters on
.135 billion did not move in 17 steps at 1e-4, and held at 1e-3; those on .63 billion (Qwen2.5-Coder
0.5B, whose GGUF file holds the head apart from the embedding) rose from .32 to .47 in 20 steps at
2e-4 (measured here)."""

_PENALTY = {"algo.overlong_limit", "algo.overlong_buffer"}
"""Defaults that follow the limit of tokens."""

UNKNOWN_SIZE = 7e9
"""Number of weights assumed for a model that does not say how many it has."""

IMITATION_RATIO = 10.0
"""Largest ratio of the rate of imitation to that of reward training: 1e-4 for full weights of
.135 billion (measured here), 2e-5 for 7 billion, as is usual in supervised fine-tuning."""

EVALUATION_SHARE = 0.1
"""Largest share of a run's time for all evaluations together."""
LEARNED_RATIO = 2.0
"""Ratio of the time for an answer that is sampled and learned to one that is only sampled."""
FEWEST_HELD_OUT = 8
"""Fewest evaluation problems, however short the run."""


def fitting(settings: TrainSettings, agents: Mapping[str, AgentSettings]) -> Values:
    """Defaults that replace those of ``settings`` for the models of ``agents``; empty if all are
    tiny, or with the preset of a paper."""
    if not has_large(agents):
        return {}
    models = [agent for agent in agents.values() if not is_player(agent.model)]
    if settings.choice.preset and settings.choice.preset in published():
        return {}
    learning = [agent for agent in models if agent.trained]
    spec = envs.spec(settings.choice.env)
    values = {**EVERYWHERE, "learner.lr": rate_of(learning), **flat(spec.larger or {})}
    if all(_weights(agent) < SMALL_BELOW for agent in learning or models):
        existing = flat(settings.plain())
        values |= {name: value for name, value in SMALL.items() if name in existing}
        values |= flat(spec.small or {})
    if any(agent.tuning == "full" for agent in learning):
        # A checkpoint has twelve bytes for each weight, with its moments.
        values["run.checkpoint_every"] = 10
    chosen_by_env = set(flat(spec.defaults)) if spec.larger is None else set()
    return {name: value for name, value in values.items() if name not in chosen_by_env}


def has_large(agents: Mapping[str, AgentSettings]) -> bool:
    """Whether a model of ``agents`` is not tiny: its checks, steps and answers can take long."""
    return any(
        not is_player(agent.model) and not is_tiny(agent.model, agent.revision)
        for agent in agents.values()
    )


def rate_of(learning: Collection[AgentSettings]) -> float:
    """The learning rate for the largest of the models that learn."""
    largest = max(map(_weights, learning), default=UNKNOWN_SIZE)
    _, lora, full = next(row for row in RATES if largest < row[0])
    return full if any(agent.tuning == "full" for agent in learning) else lora


def role_rates(settings: TrainSettings) -> dict[str, float]:
    """Role -> the learning rate that fits its model and tuning, if it is not the team's."""
    spec = envs.spec(settings.choice.env)
    if "learner.lr" not in fitting(settings, settings.agents) or "learner.lr" in flat(
        spec.larger or {}
    ):
        return {}
    tiny = flat(spec.defaults).get("learner.lr", LearnerSettings().lr)
    rates = {
        role: tiny if is_tiny(agent.model, agent.revision) else rate_of([agent])
        for role, agent in settings.agents.items()
        if agent.trained
    }
    return {role: rate for role, rate in rates.items() if rate != settings.learner.lr}


def _weights(agent: AgentSettings) -> float:
    return count_weights(agent.model, agent.revision) or UNKNOWN_SIZE


def imitation_rate(learner: AgentSettings) -> float:
    """The learning rate of imitation: the warm-up's default, or less for a large model."""
    return min(WarmupSettings().lr, IMITATION_RATIO * rate_of([learner]))


def fitted(settings: TrainSettings, agents: Mapping[str, AgentSettings]) -> TrainSettings:
    """``settings``, before any flag, with the defaults for the models of ``agents``."""
    return override(settings, nested(fitting(settings, agents)))


def with_short_evaluation(settings: TrainSettings) -> TrainSettings:
    """``settings`` with as many evaluation problems as fit :data:`EVALUATION_SHARE` of the run's
    time, unless the user named a number or all models are tiny."""
    problems, spec = settings.problems, envs.spec(settings.choice.env)
    if problems.held_out is not None or not fitting(settings, settings.agents):
        return settings
    evaluations = 3 if settings.warmup.steps else 2
    if settings.eval.every:
        evaluations += (settings.run.steps - 1) // settings.eval.every
    per_problem = evaluation_of(spec).answers(settings.choice.roles, settings.env)
    count = held_out(settings.run.steps, answers_of_step(settings), evaluations, per_problem)
    each = max(1, count // len(problems.evaluated))
    return replace(settings, problems=replace(problems, held_out=each))


def with_penalty_at_limit(settings: TrainSettings) -> TrainSettings:
    """``settings`` with the default penalty on long answers, if there is one, at the environment's
    limit of tokens."""
    values = fitting(settings, settings.agents)
    moved = _at_limit(values, settings)
    return override(settings, nested({name: moved[name] for name in _PENALTY & values.keys()}))


def _at_limit(values: Values, settings: TrainSettings) -> Values:
    """``values`` with their penalty on long answers, if there is one, at the limit of tokens of
    ``settings``. It begins at the same share of the limit."""
    if not values.keys() >= _PENALTY:
        return values
    limit = token_limit(settings)
    buffer = limit * values["algo.overlong_buffer"] // values["algo.overlong_limit"]
    return {**values, "algo.overlong_limit": limit, "algo.overlong_buffer": max(1, buffer)}


def held_out(steps: int, answers: int, evaluations: int, per_problem: int) -> int:
    """The largest number of evaluation problems that fits :data:`EVALUATION_SHARE` of a run.

    Args:
        steps: of the run.
        answers: sampled and learned in a step.
        evaluations: number of evaluations in the run.
        per_problem: answers to one problem in an evaluation.

    >>> held_out(200, 64, 2, 16)  # .1 * 2 * 200 * 64 / (2 * 16)
    80
    """
    most = EVALUATION_SHARE * LEARNED_RATIO * steps * answers / (evaluations * per_problem)
    return min(HELD_OUT, max(FEWEST_HELD_OUT, int(most)))


def answers_of_step(settings: TrainSettings) -> int:
    """Answers of the roles that learn in one training step."""
    env = settings.make_env()
    learners = {role for role, agent in settings.agents.items() if agent.trained}
    learning_agents = sum(role_of(agent) in learners for agent in env.possible_agents)
    replicas = replicas_of(settings, env.metadata)
    env.close()
    return settings.rollout.problems_per_step * replicas * learning_agents


def defaults_notice(settings: TrainSettings, argv: Collection[str] = ()) -> str:
    """A sentence on the defaults chosen for the models of a run, as flags; empty if all are tiny.

    Args:
        settings: of the run.
        argv: the command line, whose flags are left out of the sentence.
    """
    values: Values = fitting(settings, settings.agents)
    if not values:
        return ""
    plain = flat(settings.plain())
    if settings.problems.held_out is not None:
        values = {**values, "problems.held_out": settings.problems.held_out}
    values = _at_limit(values, settings)
    user_flags = flags_in(argv)
    in_effect = {
        name: value
        for name, value in to_plain(values).items()
        if plain.get(name) == value and as_flag(name) not in user_flags
    }
    return (
        f"Defaults for models of {sizes_in_words(settings.agents.values())} weights: "
        f"{' '.join(as_flag(name, value) for name, value in in_effect.items())} (the learning rate "
        "suits the largest model that learns, and evaluations take a tenth of the run; "
        "--print-config shows every setting)"
    )


def sizes_in_words(agents: Iterable[AgentSettings]) -> str:
    """The numbers of weights of all models, each once; the word "weights" follows."""
    models = [agent for agent in agents if not is_player(agent.model)]
    counts = [count_weights(agent.model, agent.revision) for agent in models]
    # "135 million and an unknown number of weights": the unknown one comes last.
    counts.sort(key=lambda weights: not weights)
    return " and ".join(dict.fromkeys(map(size_in_words, counts)))


def size_in_words(weights: int | None) -> str:
    """A number of weights in words; None: it is unknown.

    >>> size_in_words(135_000_000)
    '135 million'
    """
    if not weights:
        return "an unknown number of"
    billions = weights / 1e9
    return f"{billions:.2g} billion" if billions >= 1 else f"{weights / 1e6:.3g} million"


def as_flag(name: str, value: Any = ()) -> str:
    """A setting as a flag, in one line.

    >>> as_flag("env.prompt", "{question}\\n\\nThink.")
    '--env.prompt "{question}\\\\n\\\\nThink."'
    >>> as_flag("env.wide", True), as_flag("env.wide", False)
    ('--env.wide', '--env.no-wide')
    """
    path = name.removeprefix("run.").replace("_", "-")
    if isinstance(value, bool):
        section, _, last = path.rpartition(".")
        return f"--{section}{'.' * bool(section)}{last if value else f'no-{last}'}"
    values = value if isinstance(value, list | tuple) else [value]
    words = [str(word) for word in values]
    quoted = [word if len(word.split()) == 1 else json.dumps(word) for word in words]
    return " ".join([f"--{path}", *quoted])
