"""Supervised training on an expert's solutions: ``python benchmark.py distill --out runs/d``."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Interval
from rich.console import Console

from coterie import envs
from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.graders import build_scorer, check_graders
from coterie.agents.team.model_specs import check_models
from coterie.agents.team.settings import AgentSettings, ScoringSettings
from coterie.agents.team.team import build_team
from coterie.algorithms import LearnerSettings
from coterie.algorithms.imitation import LIKELIHOOD, imitating, worked_row
from coterie.cli.progress import LEARNED
from coterie.datatypes import (
    Completion,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    Trajectory,
    UserError,
    Validated,
    Verdict,
    derive_seed,
)
from coterie.datatypes.thinking import after_thinking, as_said, behind_thought, opened_by
from coterie.datatypes.validation import Seed
from coterie.envs.prompts import ExpertStyle, lone_prompt
from coterie.evaluation.compare.trained_on import STORED
from coterie.experts.naming import is_player
from coterie.problems.opening import open_source
from coterie.problems.split import hold_out
from coterie.problems.stream import ProblemStream
from coterie.rewards.consultation import ANSWER, THINK
from coterie.training.config.benchmark_defaults import PROBLEMS, are_tiny, asking
from coterie.training.config.model_defaults import EVERYWHERE, imitation_rate
from coterie.training.config.serialize import to_plain
from coterie.training.run.directory import check_new
from coterie.training.run.durable_files import write_or_keep
from coterie.training.run.stage_progress import loading, stage


@dataclass(frozen=True)
class DistillSettings(Validated):
    """Train a policy on an expert's solutions of training problems (arXiv:2509.23730, baseline).
    The paper names neither data nor epochs."""

    out: Path
    """Folder of the trained policy; must be new or empty."""
    policy: str = "tiny:policy"
    """The policy before training."""
    expert: str = "tiny:expert"
    """Expert whose solutions are imitated."""
    tuning: Literal["auto", "full", "lora"] = "auto"
    """Full weights or LoRA; auto: full for tiny models, LoRA for all others."""
    problems: str = envs.spec("eapo-consultation").defaults["problems"]["train"]
    """Training problems, named as for train.py."""
    questions: Annotated[int, Ge(1)] = 128
    """Evaluation problems of a generator, or of a set that also trains, which are kept out of
    training."""
    scored: tuple[str, ...] = ()
    """Sets of problems that are scored, named as for benchmark.py eapo: what is theirs is kept out
    of training, too."""
    steps: Annotated[int, Ge(1)] = 100
    """Training steps."""
    problems_per_step: Annotated[int, Ge(1)] = 16
    """Problems in a step."""
    solutions: Annotated[int, Ge(1)] = 4
    """Solutions of each problem."""
    lr: Annotated[float, Gt(0)] = 1e-3
    """Learning rate."""
    prompt_style: ExpertStyle = "plain"
    """Style of the prompt, for policy and expert."""
    max_new_tokens: Annotated[int, Ge(1)] = 96
    """Longest solution."""
    temperature: Annotated[float, Ge(0)] = 1.0
    """The expert's sampling temperature."""
    expert_tokens: Annotated[int, Interval(ge=0, lt=2**63)] = 0
    """Stop early, after the step in which the expert has written this many tokens, for the cost of
    consulting; 0: --steps decides."""
    only_right: bool = False
    """Imitate only solutions that end in the gold answer."""
    seed: Seed = 0
    """Seed of everything random."""
    scoring: ScoringSettings = field(default_factory=ScoringSettings)
    """Checking of answers (--only-right)."""

    def models(self) -> list[str]:
        """The learner and the expert."""
        return [self.policy, self.expert]

    def fitting(self) -> dict[str, Any]:
        """Defaults for models that are not tiny, by the name of the setting."""
        prompts = asking("eapo-consultation")
        return {
            "problems": PROBLEMS,
            "problems_per_step": EVERYWHERE["rollout.problems_per_step"],
            "lr": imitation_rate(AgentSettings(self.policy, tuning=self.tuning)),
            **{name: prompts[name] for name in ("prompt_style", "max_new_tokens")},
        }


def distill(settings: DistillSettings) -> None:
    """Sample the expert's solutions, train the policy on them, and save it.

    Raises:
        UserError: a setting or a model is invalid; raised before any model is loaded.
    """
    if settings.scoring != ScoringSettings() and not settings.only_right:
        raise UserError("--scoring: no answer is checked here without --only-right; leave it out")
    if settings.scoring.encoder != ScoringSettings().encoder:
        raise UserError("--scoring.encoder: no texts are compared here; leave it out")
    if is_player(settings.policy):
        raise UserError(f"{settings.policy} is not a model to train; name one with --policy")
    check_new(settings.out, flag="--out")
    agents = {
        "policy": AgentSettings(settings.policy, tuning=settings.tuning),
        "expert": AgentSettings(settings.expert, trained=False),
    }
    check_models(agents)
    stream = _stream(settings)

    console, slow = Console(), not are_tiny(settings.models())
    with loading(console, settings.models(), lines=slow):
        team = build_team(
            agents,
            learning=LearningSetup(
                LIKELIHOOD,
                imitating(LearnerSettings(lr=settings.lr)),
                temperature=1.0,
                total_steps=settings.steps,
            ),
            seed=settings.seed,
        )
    trained = team.trained["policy"]

    async def run() -> dict[str, int]:
        spent = {"steps": 0, "learned_tokens": 0, "expert_tokens": 0}
        for step in range(1, settings.steps + 1):
            problems = stream.take(settings.problems_per_step)
            solutions = await sample_solutions(team, problems, step, settings, check)
            rows = [row for row, right, _ in solutions if right]
            metrics = trained.update(rows, np.ones(len(rows)))
            spent["steps"] = step
            spent["learned_tokens"] += sum(int(row.mask.sum()) for row in rows)
            spent["expert_tokens"] += sum(written for *_, written in solutions)
            if step % max(1, settings.steps // 10) == 0 and rows:
                entropy = metrics["entropy"]
                console.print(f"step {step}/{settings.steps}  entropy {entropy:.3f}")
            if 0 < settings.expert_tokens <= spent["expert_tokens"]:
                break
        await team.aclose()
        return spent

    total = settings.steps * settings.problems_per_step * settings.solutions
    title = f"distilling {settings.expert} into {settings.policy}"
    with ExitStack() as closing:
        check = None
        if settings.only_right:
            scorer = build_scorer(settings.scoring)
            closing.callback(scorer.close)
            check = scorer.check
        with stage(console, title, total, lines=slow, pulses=(LEARNED,), unit="solutions"):
            spent = asyncio.run(run())
    trained.export(settings.out / "final" / "policy")
    seen = stream.forms(spent["steps"] * settings.problems_per_step)
    record = {"settings": to_plain(settings), "forms": sorted(seen)}
    write_or_keep(settings.out / STORED, json.dumps(record))
    write_or_keep(settings.out / "distillation.json", json.dumps(spent))
    console.print(
        f"{spent['learned_tokens']:,} tokens learned of {spent['expert_tokens']:,} that the expert "
        f"wrote; the policy is in {settings.out / 'final' / 'policy'}"
    )


async def sample_solutions(
    team: Any,
    problems: Sequence[Problem],
    step: int,
    settings: DistillSettings,
    check: Callable[[str, Problem], Verdict] | None = None,
) -> list[tuple[Trajectory, bool, int]]:
    """Return training rows (the policy's prompt and the expert's solution in the policy's format),
    whether each is right, and the number of tokens that the expert wrote. ``step`` seeds the
    sampling; without ``check`` all solutions are right."""
    expert = team.policies["expert"]
    policy_codec, expert_codec = team.codecs["policy"], team.codecs["expert"]
    sampling = Sampling(settings.max_new_tokens, settings.temperature)

    async def solution(problem: Problem, copy: int) -> tuple[Trajectory, bool, int] | None:
        text = lone_prompt(problem.question, settings.prompt_style, problem.kind)
        prompt = Prompt(
            np.asarray(expert_codec.open(text), dtype=np.int64),
            text,
            "expert_0",
            derive_seed(settings.seed, "distill", step, problem.id, copy),
            problem,
        )
        try:
            completion: Completion = await expert(prompt, sampling)
        except PolicyFailure:
            return None
        written = expert_codec.decode(completion.tokens)
        trace = as_trace(as_said(opened_by(expert_codec, prompt.tokens), written))
        right = check is None or check(trace, problem).correct
        ends = ANSWER in trace and completion.finish_reason != "length"
        opened = policy_codec.open(text)
        trace = behind_thought(opened_by(policy_codec, opened), trace)
        row = worked_row(policy_codec, opened, trace, role="policy", problem=problem.id, ends=ends)
        return row, right, len(completion.tokens)

    requests = [
        solution(problem, copy) for problem in problems for copy in range(settings.solutions)
    ]
    return [row for row in await asyncio.gather(*requests) if row is not None]


def as_trace(solution: str) -> str:
    """Format an expert's solution as a policy's answer: the thought first, then the answer. A
    solution without an answer, such as a truncated one, becomes an unfinished thought.

    >>> as_trace("1 + 1 = 2\\nAnswer: 2")
    ' <think> 1 + 1 = 2 </think>\\nAnswer: 2'
    >>> as_trace("1 + 1 = 2 + 3")
    ' <think> 1 + 1 = 2 + 3'
    """
    thought, stated, answer = solution.rpartition(ANSWER)
    if not stated or ANSWER not in after_thinking(solution):
        thought, stated = solution, ""
    for tag in THINK:
        thought = thought.replace(tag, " ")
    opened = f" {THINK[0]} {thought.strip()}"
    return f"{opened} {THINK[1]}\n{ANSWER} {answer.strip()}" if stated else opened


def _stream(settings: DistillSettings) -> ProblemStream:
    """Training problems without those on which ``benchmark.py eapo`` scores."""
    source = open_source(settings.problems, seed=settings.seed)
    exclude: frozenset[str] = frozenset()
    for text in (settings.problems, *settings.scored):
        scored = open_source(text, purpose="eval", seed=settings.seed)
        few = scored.size is None or scored.fingerprint == source.fingerprint
        count = settings.questions if few else None
        exclude |= hold_out(scored, source, count, settings.seed, way_out="lower --questions")[1]
    if settings.only_right:
        check_graders(settings.scoring, [source[0]])
    return ProblemStream(source, settings.seed, exclude)
