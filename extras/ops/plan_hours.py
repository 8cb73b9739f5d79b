"""Estimate how long a run takes: operations and memory traffic divided by the speed of the card.

The estimate is an upper bound, as every answer has its maximum length.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coterie import envs
from coterie.agents.models.spec import ModelSpec
from coterie.agents.team.teachers import only_teaches, teacher_seats
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.cli.plugins import load
from coterie.datatypes import role_of
from coterie.evaluation.evaluation import Evaluation
from coterie.extras.ops.footprint import Footprint
from coterie.problems.sizes import measured
from coterie.training.config.train_settings import TrainSettings, replicas_of

CARDS = (
    (32, "an RTX 4090", 165e12, 83e12, 1.0e12),
    (48, "an L40S", 362e12, 92e12, 0.86e12),
    (100, "an A100", 312e12, 19.5e12, 2.0e12),
    (math.inf, "an H200", 989e12, 67e12, 4.8e12),
)
"""(maximum GiB, name, operations per second in bfloat16 and in float32, bytes per second), from the
makers' data sheets, without sparsity and TF32."""
_CPU, _CPU_BANDWIDTH = "two CPU cores", 2e10
_CPU_PEAK = {1: 3.2e11, 2: 8e11, 4: 2e11}
"""Operations per second by bytes per number: large matrix products of two EPYC cores, measured in
bfloat16 with ``avx512_bf16`` and in float32 with AVX2. In 8 bits an update was 1.6 times as fast as
in float32, with ``avx512_vnni``."""
_OF_PEAK, _OF_BANDWIDTH = 0.4, 0.6
"""Shares of these peaks that a learner and a decoder reach."""


@dataclass(frozen=True)
class RolePlan:
    """The work of one model in a training step."""

    rows: int
    """Rows per step; 0 if the role takes no part in training."""
    prompt: int
    """Tokens of the longest prompt."""
    longest: int
    """Tokens of the longest row."""
    answer: int
    """Maximum tokens of an answer."""
    memory: Footprint
    config: Any
    """The decoder's configuration."""
    device: str
    sampler: str
    """The device of its sampler, or the first one of its vLLM engine."""
    tensor_parallel: int
    """GPUs over which its vLLM engine is spread."""
    spec: ModelSpec
    trained: bool
    shards: int
    """GPUs over which its learner is sharded."""
    itemsize: int
    """Bytes per number in its computations."""
    imitated: int
    """Worked solutions per warm-up step."""
    continues: bool = False
    """Whether its answers may be continued, so that the sampler keeps their contexts."""

    @property
    def multiplied(self) -> int:
        """Bytes per number in its matrix products."""
        return 1 if self.memory.int8 else self.itemsize


def hours(
    settings: TrainSettings, roles: Mapping[str, RolePlan], cards: Mapping[str, int | None]
) -> float:
    """Upper bound on the hours of a run.

    Args:
        settings: settings of the run.
        roles: role -> its model's work per step.
        cards: device -> memory in bytes.
    """
    sampling = learning = imitating = 0.0
    for role, model in roles.items():
        _, peak, _ = _speeds(model.device, cards.get(model.device), model.multiplied)
        memory = model.memory
        if not model.rows:
            continue
        # Chen et al., arXiv:1604.06174, and Kaplan et al., arXiv:2001.08361: 2 operations per
        # weight and token forward, 2 for gradients of activations, 2 for those of weights.
        if model.trained:
            learner = settings.learner_of(role)
            once = 2 + 2 + 2 * (model.spec.lora is None) + 2 * memory.recomputes
            each = once * learner.epochs + 2 * _readings(learner, settings.algorithms.of(role))
            work = model.rows * model.longest * each * memory.parameters
            speed = _OF_PEAK * peak * model.shards
            learning += work / speed
            # A worked solution is at most as long as an answer, and is read once.
            imitating += model.imitated * model.longest * once * memory.parameters / speed
        sampling += _sampling_s(settings, model, cards)
    for role, seat in teacher_seats(settings.agents, settings.learned_by).items():
        teacher, pupil = roles[seat], roles[role]
        _, peak, _ = _speeds(teacher.device, cards.get(teacher.device), teacher.multiplied)
        work = pupil.rows * pupil.longest * 2 * teacher.memory.parameters
        learning += work / (_OF_PEAK * peak)
    seconds = settings.run.steps * (sampling + learning) + settings.warmup.steps * imitating
    return seconds / 3600


@dataclass(frozen=True)
class EvaluationPlan:
    """The evaluations of a run: before and after training, after imitation, and between."""

    times: int
    problems: int
    answers: int
    """Answers of models in all of them together."""
    hours: float


def evaluations(
    settings: TrainSettings,
    roles: Mapping[str, RolePlan],
    cards: Mapping[str, int | None],
    problems: int | None,
) -> EvaluationPlan | None:
    """The evaluations of a run; None without any, or where only reading a set tells its size.

    Args:
        settings: settings of the run.
        roles: role -> its model's work per step; a role answers as many problems as any other.
        cards: device -> memory in bytes.
        problems: number of evaluation problems; None: they have not been read.
    """
    spec = envs.spec(settings.choice.env)
    if problems is None:
        problems = measured(settings.problems.evaluated, settings.problems.held_out)
    if not settings.eval.enabled or problems is None or spec.evaluation is None:
        return None
    evaluation: Evaluation = load(spec.evaluation, f"env {spec.name!r}")
    # Before and after, after imitation, and between: but not twice at the last step.
    times = 2 + (settings.warmup.steps > 0)
    times += (settings.run.steps - 1) // settings.eval.every if settings.eval.every else 0
    each = problems * evaluation.answers(settings.choice.roles, settings.env)
    answering = [model for role, model in roles.items() if not only_teaches(role)]
    longest = getattr(settings.env, "eval_max_new_tokens", 0)
    share = math.ceil(each / max(len(answering), 1))
    seconds = 0.0
    for model in answering:
        more = max(longest - model.answer, 0)
        plan = replace(model, rows=share, answer=model.answer + more, longest=model.longest + more)
        seconds += _sampling_s(settings, plan, cards)
    return EvaluationPlan(times, problems, times * each, times * seconds / 3600)


def _sampling_s(settings: TrainSettings, model: RolePlan, cards: Mapping[str, int | None]) -> float:
    """Seconds to sample the rows of a model at their longest."""
    _, peak, bandwidth = _speeds(model.device, cards.get(model.device), model.multiplied)
    memory = model.memory
    token = 2 * memory.parameters / (_OF_PEAK * peak)
    side = min(model.rows, settings.vllm.max_sequences)
    # Each decoding step reads the weights once for all rows, and the cache of each row. With many
    # rows a CPU takes longer to multiply than to read.
    read = memory.parameters * model.multiplied
    read += side * model.longest / 2 * memory.cache_per_token
    step = max(read / (_OF_BANDWIDTH * bandwidth), side * token)
    return math.ceil(model.rows / side) * model.answer * step + model.rows * model.prompt * token


def _readings(learner: LearnerSettings, algo: Algorithm) -> float:
    """Maximum forward passes over a row per step that compute log-probabilities only."""
    # By the weights before several updates, and by the reference; by both for the reward.
    often = (learner.optimizer_steps > 1) + (algo.kl_coefficient > 0)
    often += 2 * (algo.kl_in_reward > 0)
    # By the policy, and after another context by the reader, until distillation has faded.
    passes = 1 if algo.distillation.teacher else 2
    return often + passes * (algo.distillation.beta > 0) * (algo.distillation.fade or 1.0)


def card_name(device: str, card: int | None) -> str:
    """Name of the card whose speed stands for a device with ``card`` bytes."""
    return _speeds(device, card, 2)[0]


def _speeds(device: str, card: int | None, itemsize: int) -> tuple[str, float, float]:
    if device == "cpu":
        return _CPU, _CPU_PEAK[itemsize], _CPU_BANDWIDTH
    size = (card or 0) / 2**30
    _, name, half, full, bandwidth = next(known for known in CARDS if size <= known[0])
    return name, full if itemsize == 4 else half, bandwidth


def rows_of(settings: TrainSettings, role: str) -> tuple[int, float]:
    """(rows per step, different prompts per row)."""
    choice = settings.choice
    env = envs.make(
        choice.env, settings=settings.env, roles=choice.roles if settings.env is not None else None
    )
    agents = sum(role_of(agent) == role for agent in env.possible_agents)
    replicas = replicas_of(settings, env.metadata)
    # Agents with the same first prompt share it, and so do replicas.
    first, _ = env.reset(seed=0)
    agents_by_prompt = Counter(
        seen["tokens"].tobytes()
        for agent, seen in first.items()
        if role_of(agent) == role and seen.get("active", 1)
    )
    env.close()
    rows = max(1, replicas * agents)
    alike = replicas * max(agents_by_prompt.values()) if agents_by_prompt else 1
    learns = envs.spec(choice.env).learns
    can_learn = learns is None or role in learns(settings.env)
    return can_learn * settings.rollout.problems_per_step * rows, (rows - alike + 1) / rows
