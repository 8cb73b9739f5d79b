"""Real problems through the whole command, where the machine has them."""

import asyncio
import os
from pathlib import Path

import pytest

from coterie import envs
from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import Episode, Problem, Sampling
from coterie.envs.core_teaching.evaluation import EVALUATION
from coterie.experts import ScriptedPolicy, ScriptedSettings
from coterie.problems.prepare import ProblemSettings, prepare
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.rollouts import Collector, tasks_for

FOLDER = Path(os.environ.get("COTERIE_DATA", "/nonexistent"))
TRAIN, TEST = FOLDER / "gsm8k_train.jsonl", FOLDER / "gsm8k_test.jsonl"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not TEST.is_file(), reason="COTERIE_DATA names no folder with GSM8K"),
]


@pytest.mark.slow
def test_scripted_gold_answers_score_one_and_no_prompt_is_harmed() -> None:
    roles = ("alice", "bob")
    team = load_team({role: ModelSpec(f"tiny:{role}") for role in roles}, trained=set())
    codecs = {role: team[role].codec for role in roles}
    scorer = AnswerScorer()
    problems = prepare(ProblemSettings(train=str(TRAIN), eval=(str(TEST),))).evaluation
    assert len(problems) == 1319
    problems = problems[::5]

    prompts: list[tuple[str, Episode]] = []
    gold = ScriptedSettings(template="<final_answer>{answer}</final_answer>")
    collector = Collector(
        lambda: envs.make("core-teaching", codecs=codecs, scorer=scorer),
        {role: ScriptedPolicy(gold, codecs[role]) for role in roles},
        sampling=Sampling(256),
        scorer=scorer,
    )

    async def play(problems: tuple[Problem, ...], *, mode: str) -> list[Episode]:
        episodes = await collector.collect(tasks_for(problems, seed=0, mode=mode))
        prompts.extend((problem.question, e) for problem, e in zip(problems, episodes))
        return episodes

    settings = envs.spec("core-teaching").settings()  # type: ignore[misc]
    outcomes = asyncio.run(EVALUATION.examine(play, problems, roles, settings))  # type: ignore[arg-type]
    metrics = EVALUATION.estimate(outcomes, 10, 0)
    for name in ("pass@1/alice", "pass@1/bob", "pass@2/bob", "team_pass@1"):
        assert metrics[name].value == 1.0
        assert metrics[name].count == len(problems)

    for question, episode in prompts:
        for row in episode.trajectories:
            codec, handle = codecs[row.role], team[row.role].handle
            context = row.tokens[: row.turns[0][0]]
            # Every character of the question is there, and there is room to answer.
            assert question in codec.decode(context)
            assert len(context) + 48 <= handle.context
            assert not codec.unknown_tokens(question)
    scorer.close()
