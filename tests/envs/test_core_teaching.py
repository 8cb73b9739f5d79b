"""Scripted episodes whose rewards are worked out by hand."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from envs.core_teaching import CoreTeachingEnv, CoreTeachingSettings
from envs.core_teaching.episode import coin, shows_hint
from envs.core_teaching.prompts import prompt_for
from envs.core_teaching.settings import weights_at
from vocabulary import Problem, UserError, derive_seed

COLD = "Question: 7 + 8 - 3 =\nLet's solve this step by step:"
HINTED = "Question: 7 + 8 - 3 =\nHint:\n7 + 8 = 5 - 3 =\nLet's solve this step by step:"


def trace(answer: int | str, work: str = "7 + 8 = 5 - 3 =") -> str:
    return (
        f'<strategy id="1"> {work} <result> {answer} </result> </strategy>'
        f" <final_answer> {answer} </final_answer>"
    )


RIGHT, WRONG = trace(2), trace(3)

# Exploration and trace accuracy off: what is left can be added up at a glance.
PLAIN = CoreTeachingSettings(
    hint_probability=1.0, w_explore=(0.0,), lambda_cm=(0.0,), lambda_ta=0.0
)


class Played:
    """One finished episode."""

    def __init__(
        self,
        env: CoreTeachingEnv,
        answers: Mapping[str, str],
        *,
        seed: int = 0,
        **options: Any,
    ) -> None:
        observations, infos = env.reset(seed=seed, options=options)
        self.prompts: dict[str, str] = {}
        self.steps = 0
        self.rounds: list[list[str]] = []
        while env.agents:
            asked = [agent for agent in env.agents if observations[agent]["active"]]
            self.rounds.append(asked)
            self.prompts |= {agent: observations[agent]["text"] for agent in asked}
            actions = {agent: answers[agent] for agent in asked if agent in answers}
            observations, self.rewards, self.terminated, _, infos = env.step(actions)
            self.steps += 1
        self.infos = infos
        self.episode = infos["alice_0"]["episode"]

    def terms(self, name: str) -> dict[str, float]:
        return {agent: info["reward_terms"][name] for agent, info in self.infos.items()}


@pytest.fixture
def make(scorer: Any) -> Any:
    def build(settings: CoreTeachingSettings = PLAIN, **more: Any) -> CoreTeachingEnv:
        return CoreTeachingEnv(settings, scorer=scorer, **more)

    return build


RESCUE = {
    "alice_0": WRONG,
    "alice_1": WRONG,
    "alice_2": RIGHT,
    "bob_0": WRONG,
    "bob_1": RIGHT,
    "bob_2": WRONG,
}


def test_a_rescue(make: Any, problem: Problem) -> None:
    played = Played(make(), RESCUE, problem=problem)

    assert played.rounds == [["alice_0", "alice_1", "bob_0", "bob_1"], ["alice_2", "bob_2"]]
    assert played.prompts["alice_0"] == played.prompts["bob_1"] == COLD
    assert played.prompts["alice_2"] == played.prompts["bob_2"] == HINTED
    # Correct: 1 + .3; rescued: + .15. Everyone else is wrong about a number: no partial credit.
    assert played.rewards == pytest.approx(
        {"alice_0": 0, "alice_1": 0, "alice_2": 1.45, "bob_0": 0, "bob_1": 1.3, "bob_2": 0}
    )
    alice, bob, teacher = (played.infos[name] for name in ("alice_2", "bob_2", "bob_1"))
    assert (alice["rescued"], alice["eligible"], alice["hint_outcome"]) == (True, True, "helped")
    assert alice["hint_lift"] == 1.0
    # Bob had solved it once out of twice.
    assert (bob["eligible"], bob["hint_outcome"], bob["hint_lift"]) == (False, "hurt", -0.5)
    assert teacher["teacher"]
    assert not alice["teacher"]
    assert (alice["round"], teacher["round"]) == ("B", "A")
    assert (alice["loss_weight"], teacher["loss_weight"]) == (0.8, 1.0)
    assert alice["groups"] == {
        "problem": "q",
        "problem+role": "q/alice",
        "problem+role+context": "q/alice/hinted",
    }
    assert teacher["groups"]["problem+role+context"] == "q/bob/cold"
    assert played.episode["cold_rate"] == {"alice": 0.0, "bob": 0.5}
    counts = ("answered", "failed", "hinted", "leaked", "helped", "hurt", "eligible", "rescued")
    assert [played.episode[name] for name in counts] == [6, 0, 2, 0, 1, 1, 1, 1]
    assert played.terminated == dict.fromkeys(RESCUE, True)


def test_every_term_by_hand(make: Any, problem: Problem) -> None:
    settings = dataclasses.replace(
        PLAIN,
        w_explore=(0.2, 0.5),
        lambda_cm=(0.0, 0.1),
        lambda_ta=0.2,
        teacher_lift=0.4,
        explore_correct_only=True,
    )
    other = trace(2, "15 - 3 =")
    answers = {**RESCUE, "alice_2": "9" + other}
    played = Played(make(settings), answers, problem=problem, epoch=2)

    # Embeddings: alice_2 starts with "9", all others with "<": cosine distance 1 to it, 0 among
    # themselves. Operations: "+ - =" for the others and "- =" for it, so Jaccard 2/3; "result" and
    # "strategy" stand in tags. d = .6 + .4 / 3 = .733333; .8 for nobody.
    far = 0.6 + 0.4 * (1 - 2 / 3) - 0.15
    # Leave-one-out in epoch 2 at .5: alice_2 is far from all; bob_1 has equals at distance 0.
    assert played.terms("exploration") == pytest.approx(
        {**dict.fromkeys(answers, 0.0), "alice_2": 0.5 * far}
    )
    # Round B: bob's only trace there is wrong, so alice_2 has nobody worth differing from. Round A:
    # alice has no correct trace, so bob_1 neither.
    assert played.terms("cross_model") == dict.fromkeys(answers, 0.0)
    # v2, c (1 - rho): round A 1 of 4 correct, round B 1 of 2.
    assert played.terms("trace_accuracy") == pytest.approx(
        {**dict.fromkeys(answers, 0.0), "bob_1": 0.2 * 0.75, "alice_2": 0.2 * 0.5}
    )
    # The hint of bob_1 lifted alice from 0 to 1; bob's own second try does not count.
    assert played.terms("teacher_lift") == pytest.approx(
        {**dict.fromkeys(answers, 0.0), "bob_1": 0.4}
    )
    for agent, info in played.infos.items():
        assert played.rewards[agent] == sum(info["reward_terms"].values())


def test_distance_from_a_partner_that_was_right(make: Any, problem: Problem) -> None:
    settings = dataclasses.replace(PLAIN, lambda_cm=(0.1,))
    answers = {**RESCUE, "alice_0": "9" + RIGHT}
    played = Played(make(settings), answers, problem=problem)
    # alice_0 and bob_1 are right and differ in the first letter only: d = .6, of which .45 is paid.
    # alice_1 is wrong and not paid, although it is as far; in round B bob's trace is wrong.
    assert played.terms("cross_model") == pytest.approx(
        {**dict.fromkeys(answers, 0.0), "alice_0": 0.1 * 0.45, "bob_1": 0.0}
    )


# One flip at a time of: second round, correct, hint shown, own cold traces failed, peer succeeded.
@pytest.mark.parametrize(
    ("changes", "hint_probability", "rescued"),
    [
        ({}, 1.0, True),
        ({"alice_2": WRONG}, 1.0, False),
        ({}, 0.0, False),
        ({"alice_1": RIGHT}, 1.0, False),
        ({"bob_1": WRONG}, 1.0, False),
    ],
    ids=["all hold", "wrong", "no hint", "own success", "no peer"],
)
def test_rescue_needs_every_condition(
    make: Any,
    problem: Problem,
    changes: dict[str, str],
    hint_probability: float,
    rescued: bool,
) -> None:
    settings = dataclasses.replace(PLAIN, hint_probability=hint_probability)
    played = Played(make(settings), {**RESCUE, **changes}, problem=problem)
    assert played.infos["alice_2"]["rescued"] is rescued
    assert played.terms("rescue")["alice_2"] == (0.15 if rescued else 0.0)
    # Nobody of the first round is ever rescued, right as it may be.
    assert not played.infos["bob_1"]["rescued"]


def test_rescue_needs_a_cold_trace_of_the_same_role(make: Any, problem: Problem) -> None:
    answers = {
        agent: text for agent, text in RESCUE.items() if agent[:7] not in ("alice_0", "alice_1")
    }
    played = Played(make(), answers, problem=problem)
    assert played.infos["alice_2"]["hinted"]
    assert not played.infos["alice_2"]["rescued"]
    assert played.infos["alice_2"]["hint_lift"] is None
    assert played.episode["cold_rate"] == {"bob": 0.5}
    assert played.episode["failed"] == 2


def test_an_answer_alone_teaches_nobody(make: Any, problem: Problem) -> None:
    answers = {**RESCUE, "bob_1": "<final_answer>2</final_answer>"}
    played = Played(make(), answers, problem=problem)
    assert played.prompts["alice_2"] == COLD
    info = played.infos["alice_2"]
    assert (info["correct"], info["hinted"], info["rescued"], info["control"]) == (
        True, False, False, False,
    )  # fmt: skip


def test_the_second_round_is_played_when_nobody_succeeded(make: Any, problem: Problem) -> None:
    played = Played(make(), dict.fromkeys(RESCUE, WRONG), problem=problem)
    assert played.steps == 2
    assert played.prompts["alice_2"] == played.prompts["bob_2"] == COLD
    assert played.infos["alice_2"]["loss_weight"] == 0.8


def test_without_a_second_round_there_is_one_step(make: Any, problem: Problem) -> None:
    env = make(dataclasses.replace(PLAIN, k_hinted=0))
    assert env.possible_agents == ["alice_0", "alice_1", "bob_0", "bob_1"]
    played = Played(env, RESCUE, problem=problem)
    assert played.steps == 1
    assert played.rewards == pytest.approx({"alice_0": 0, "alice_1": 0, "bob_0": 0, "bob_1": 1.3})
    with pytest.raises(UserError, match="set k_hinted above 0"):
        env.reset(options={"mode": "probe", "problem": problem})


def test_evaluation_is_cold_and_pays_correctness(make: Any, problem: Problem, scorer: Any) -> None:
    settings = dataclasses.replace(PLAIN, w_explore=(0.2,), eval_max_new_tokens=99)
    env = make(settings)
    _, infos = env.reset(seed=0, options={"problem": problem, "mode": "eval"})
    assert {info["max_new_tokens"] for info in infos.values()} == {99}
    played = Played(env, RESCUE, problem=problem, mode="eval")
    assert played.rounds == [list(RESCUE)]
    assert set(played.prompts.values()) == {COLD}
    assert played.rewards == {agent: float(text == RIGHT) for agent, text in RESCUE.items()}
    assert played.infos["bob_1"]["reward_terms"] == {"correct": 1.0}
    assert {info["loss_weight"] for info in played.infos.values()} == {1.0}
    assert scorer.embedded == []


def test_a_probe_has_controls(make: Any, problem: Problem) -> None:
    env = make()
    shown = [
        Played(env, RESCUE, problem=problem, mode="probe", seed=seed).infos["alice_2"]
        for seed in range(40)
    ]
    hinted = [info for info in shown if info["hinted"]]
    controls = [info for info in shown if info["control"]]
    assert len(hinted) + len(controls) == 40
    # The coins of 40 seeds, counted apart.
    u = [derive_seed("core-teaching", "hint coin", seed, "alice_2") / 2**63 for seed in range(40)]
    assert len(hinted) == sum(draw < 0.5 for draw in u)
    assert 10 < len(hinted) < 30
    assert all(info["eligible"] for info in hinted)
    assert not any(info["eligible"] for info in controls)
    never = Played(env, RESCUE, problem=problem, mode="probe", hint_probability=0.0)
    assert not never.infos["alice_2"]["hinted"]


def test_the_coin_shows_the_hint_strictly_below_its_probability() -> None:
    assert shows_hint(0.7499, 0.75)
    assert not shows_hint(0.75, 0.75)
    assert not shows_hint(0.0, 0.0)
    draws = [coin(seed, "alice_2") for seed in range(2000)]
    assert all(0 <= draw < 1 for draw in draws)
    # Mean of 2000 uniforms: .5 with a standard error of .0065.
    assert sum(draws) / 2000 == pytest.approx(0.5, abs=0.03)
    assert coin(1, "alice_2") != coin(1, "bob_2")


def test_failed_agents_are_left_out(make: Any, problem: Problem) -> None:
    settings = dataclasses.replace(PLAIN, lambda_ta=0.2)
    answers = {agent: text for agent, text in RESCUE.items() if agent not in ("alice_0", "bob_0")}
    played = Played(make(settings), answers, problem=problem)
    # rho of round A is now 1 of 2.
    assert played.terms("trace_accuracy")["bob_1"] == pytest.approx(0.2 * 0.5)
    assert played.episode["cold_rate"] == {"alice": 0.0, "bob": 1.0}
    failed = played.infos["alice_0"]
    assert failed["failed"]
    assert set(failed["reward_terms"].values()) == {0.0}
    assert failed["groups"]["problem"] == "q"
    assert played.infos["alice_2"]["rescued"]


def test_everyone_may_fail(make: Any, problem: Problem) -> None:
    for settings in (PLAIN, CoreTeachingSettings(), dataclasses.replace(PLAIN, k_hinted=0)):
        played = Played(make(settings), {}, problem=problem)
        assert set(played.rewards.values()) == {0.0}
        assert played.episode["answered"] == 0
        assert not played.episode["team_correct"]


def test_second_tries_see_no_cold_trace(make: Any, problem: Problem) -> None:
    marks = {agent: trace(3, f"secret{place}") for place, agent in enumerate(RESCUE)}
    played = Played(make(), {**marks, "bob_1": RIGHT}, problem=problem)
    assert all("secret" not in prompt for prompt in played.prompts.values())
    assert played.prompts["alice_2"] == HINTED


BOTH_RIGHT = {**RESCUE, "alice_0": trace(2, "work A"), "bob_1": trace(2, "work B")}


class TestTeachers:
    """alice_0 and bob_1 are right; alice's hint says A, bob's says B."""

    def hints(self, make: Any, problem: Problem, **how: Any) -> dict[str, str]:
        step = how.pop("step", 0)
        answers = how.pop("answers", BOTH_RIGHT)
        env = make(dataclasses.replace(PLAIN, **how), roles=how.pop("roles", ("alice", "bob")))
        return Played(env, answers, problem=problem, step=step).episode["hints"]

    def test_equals_go_by_the_order_of_the_roles(self, make: Any, problem: Problem) -> None:
        assert self.hints(make, problem) == {"alice": "work A", "bob": "work A"}

    def test_the_larger_provisional_reward_wins(self, make: Any, problem: Problem) -> None:
        # bob_1 starts with another letter than all others: only it earns exploration.
        answers = {**BOTH_RIGHT, "bob_1": "9" + trace(2, "work B")}
        how: dict[str, Any] = {"w_explore": (0.2,), "answers": answers}
        assert self.hints(make, problem, **how) == {"alice": "work B", "bob": "work B"}
        how["teacher_score"] = "exploitation"
        assert self.hints(make, problem, **how) == {"alice": "work A", "bob": "work A"}

    def test_prefer_peer(self, make: Any, problem: Problem) -> None:
        how = {"teacher": "prefer-peer"}
        assert self.hints(make, problem, **how) == {"alice": "work B", "bob": "work A"}
        alone = {**BOTH_RIGHT, "alice_0": WRONG}
        assert self.hints(make, problem, answers=alone, **how) == {
            "alice": "work B",
            "bob": "work B",
        }

    def test_rotating(self, make: Any, problem: Problem) -> None:
        how = {"teacher": "rotating"}
        assert self.hints(make, problem, step=0, **how)["bob"] == "work A"
        assert self.hints(make, problem, step=1, **how)["bob"] == "work B"
        assert self.hints(make, problem, step=2, **how)["bob"] == "work A"
        alone = {**BOTH_RIGHT, "bob_1": WRONG}
        assert self.hints(make, problem, step=1, answers=alone, **how)["bob"] == "work A"

    def test_difficulty_routed(self, make: Any, problem: Problem) -> None:
        how: dict[str, Any] = {"teacher": "difficulty-routed"}
        # Two of four are right: easy, so roles take turns.
        assert self.hints(make, problem, step=1, **how)["alice"] == "work B"
        # Three of eight are right, two of them bob's: hard, so bob teaches whoever's turn it is.
        answers = {f"{role}_{k}": WRONG for role in ("alice", "bob") for k in range(5)}
        answers |= {"alice_0": trace(2, "work A")}
        answers |= {f"bob_{k}": trace(2, "work B") for k in (1, 3)}
        how |= {"answers": answers, "k_cold": 4}
        assert self.hints(make, problem, step=0, **how)["alice"] == "work B"


def test_hints_are_capped_in_each_students_tokens(make: Any, problem: Problem) -> None:
    class Letters:
        """Two tokens a character."""

        def count(self, text: str) -> int:
            return 2 * len(text)

        def truncate(self, text: str, limit: int, *, keep: str = "head") -> str:
            return text[: limit // 2] if keep == "head" else text[len(text) - limit // 2 :]

    env = make(dataclasses.replace(PLAIN, hint_tokens=6), tokenizers={"bob": Letters()})
    played = Played(env, RESCUE, problem=problem)
    # "7 + 8 = 5 - 3 =": six bytes for alice, three characters for bob; blanks at the end go.
    assert played.episode["hints"] == {"alice": "7 + 8", "bob": "7 +"}


def test_leaks_are_counted(make: Any, problem: Problem) -> None:
    answers = {**RESCUE, "bob_1": trace(2, "7 + 8 = 5 - 3 = 2 so")}
    played = Played(make(), answers, problem=problem)
    assert played.infos["alice_2"]["leak"]
    assert played.episode["leaked"] == 2


def test_three_roles(make: Any, problem: Problem) -> None:
    env = make(roles=("alice", "bob", "carol"))
    answers = {f"{role}_{k}": WRONG for role in env.roles for k in range(3)}
    answers |= {"carol_0": RIGHT, "alice_2": RIGHT, "bob_2": RIGHT}
    played = Played(env, answers, problem=problem)
    assert [agent for agent, info in played.infos.items() if info["rescued"]] == [
        "alice_2", "bob_2",
    ]  # fmt: skip


def test_partial_credit_and_its_options(make: Any, scorer: Any) -> None:
    capital = Problem(id="c", question="?", gold="new york city", kind="text")
    answers = {**RESCUE, "alice_0": trace("york"), "bob_1": trace("new york city")}

    def exploitation(**how: Any) -> tuple[float, float]:
        env = make(dataclasses.replace(PLAIN, **how))
        terms = Played(env, answers, problem=capital).terms("exploitation")
        return terms["alice_0"], terms["bob_1"]

    # F1 of one shared token of 1 and 3: 2 / 4 = .5.
    assert exploitation() == pytest.approx((0.3 * 0.5, 1.3))
    assert exploitation(alpha_only_if_wrong=True) == pytest.approx((0.15, 1.0))
    assert exploitation(alpha=0.1, w_exploit=2.0) == pytest.approx((0.1, 2.2))


def test_wrong_traces_are_paid_for_distance_only_if_asked(make: Any, problem: Problem) -> None:
    answers = {**RESCUE, "alice_0": "9" + WRONG}
    for correct_only, paid in ((True, 0.0), (False, 0.2 * 0.45)):
        settings = dataclasses.replace(PLAIN, w_explore=(0.2,), explore_correct_only=correct_only)
        played = Played(make(settings), answers, problem=problem)
        # It differs from all others in its first letter: d = .6, the margin is .15.
        assert played.terms("exploration")["alice_0"] == pytest.approx(paid)


def test_ties_go_by_role_then_sample_whatever_the_round(make: Any, problem: Problem) -> None:
    settings = dataclasses.replace(
        PLAIN, w_explore=(1.0,), explore_mode="literal", cap=1, explore_correct_only=False
    )
    played = Played(make(settings), {**RESCUE, "alice_2": "9" + RIGHT}, problem=problem)
    # alice_2 and bob_1 are equally right. alice_2 comes first, is the whole set and earns nothing;
    # all others are .6 away from it.
    assert played.terms("exploration") == pytest.approx(
        {**dict.fromkeys(RESCUE, 0.45), "alice_2": 0.0}
    )


def test_a_seeded_reset_seeds_the_action_spaces(make: Any, sums: Any) -> None:
    env = make(source=sums)
    samples = []
    for seed in (1, 1, 2):
        env.reset(seed=seed)
        samples.append([env.action_space(agent).sample() for agent in env.possible_agents])
    assert samples[0] == samples[1] != samples[2]
    assert len(set(samples[0])) == len(samples[0])


def test_strategy_ratio_looks_inside_a_trace(make: Any, problem: Problem, scorer: Any) -> None:
    block = "<strategy>{}<result>2</result></strategy>"
    # Two strategies that begin alike and one that does not: the greedy set has two of three.
    text = "".join(map(block.format, ("1 + 1", "1 + 1", "9 + 1"))) + "<answer>2</answer>"
    settings = dataclasses.replace(PLAIN, w_explore=(0.3,), explore_mode="strategy-ratio")
    played = Played(make(settings), {**RESCUE, "bob_1": text}, problem=problem)
    terms = played.terms("exploration")
    assert terms.pop("bob_1") == pytest.approx(0.3 * 2 / 3)
    assert set(terms.values()) == {0.0}
    assert played.episode["exploration_zero"] is False


def test_schedules_count_epochs_from_one() -> None:
    settings = CoreTeachingSettings()
    at = [weights_at(settings, epoch) for epoch in (1, 2, 3)]
    assert [weights.exploration for weights in at] == [0.2, 0.05, 0.05]
    assert [weights.cross_model for weights in at] == [0.0, 0.1, 0.1]


def test_requests_name_all_that_a_step_asks(make: Any, problem: Problem, scorer: Any) -> None:
    settings = dataclasses.replace(PLAIN, w_explore=(0.2,), lambda_cm=(0.1,))
    env = make(settings)
    two_ways = trace(3).replace(" <final", "<strategy>b<result>2</result></strategy> <final")
    answers = {**RESCUE, "bob_0": two_ways.replace("> 3 </final", "> 2 </final")}
    env.reset(seed=0, options={"problem": problem})
    for round_ in (("alice_0", "alice_1", "bob_0", "bob_1"), ("alice_2", "bob_2")):
        actions = {agent: answers[agent] for agent in round_}
        requests = env.score_requests(actions)
        assert scorer.checked == scorer.embedded == []
        env.step(actions)
        assert set(scorer.checked) <= {text for text, _ in requests.checks}
        assert set(scorer.embedded) == set(requests.embeddings)
        scorer.checked.clear()
        scorer.embedded.clear()


def test_nothing_is_embedded_without_a_weight(make: Any, problem: Problem, scorer: Any) -> None:
    env = make()
    env.reset(seed=0, options={"problem": problem})
    assert env.score_requests(RESCUE).embeddings == ()
    Played(env, {**RESCUE, "alice_0": RIGHT}, problem=problem)
    assert scorer.embedded == []


def test_an_episode_is_a_function_of_its_seed_and_options(make: Any, sums: Any) -> None:
    env, other = make(source=sums), make(source=sums)
    answers = dict.fromkeys(RESCUE, RIGHT)
    Played(other, answers, seed=9)
    assert Played(env, answers, seed=5).infos == Played(other, answers, seed=5).infos
    questions = {Played(env, answers, seed=seed).prompts["alice_0"] for seed in range(5)}
    assert len(questions) == 5
    # Unseeded resets go on from the last seed, each with a problem of its own.
    first, _ = env.reset(seed=3)
    second, _ = env.reset()
    third, _ = env.reset()
    other.reset(seed=3)
    again, _ = other.reset()
    assert len({shown["alice_0"]["text"] for shown in (first, second, third)}) == 3
    assert again == second


def test_prompts_that_ask_for_strategies(problem: Problem) -> None:
    cold = prompt_for(problem, "strategies")
    assert cold.endswith("Question: 7 + 8 - 3 =")
    assert "plain number" in cold
    assert "peer_hint" not in cold
    hinted = prompt_for(problem, "strategies", "add {first}")
    assert "<peer_hint>\nadd {first}\n</peer_hint>" in hinted
    assert prompt_for(problem, "plain", "{x}") == COLD.replace("\nLet", "\nHint:\n{x}\nLet")


def test_a_transcript(make: Any, problem: Problem, capsys: pytest.CaptureFixture[str]) -> None:
    env = make(render_mode="ansi")
    Played(env, RESCUE, problem=problem)
    text = env.render()
    assert "gold answer: 2" in text
    assert "right, hinted, rescued; reward +1.450 (exploitation +1.300, rescue +0.150)" in text
    Played(make(render_mode="human"), {**RESCUE}, problem=problem)
    assert capsys.readouterr().out.strip() == text.strip()


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"k_cold": 0}, "k_cold is 0: it must be at least 1"),
        ({"k_hinted": -1}, "k_hinted is -1"),
        ({"hint_probability": 1.5}, "between 0 and 1"),
        ({"hint_probability": float("nan")}, "between 0 and 1"),
        ({"w_explore": ()}, "name a weight for epoch 1"),
        ({"teacher": "worst"}, "teacher is 'worst': choose one of best, prefer-peer"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"cap": 0}, "cap is 0"),
    ],
)
def test_settings_that_make_no_sense(how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        CoreTeachingSettings(**how)


@pytest.mark.parametrize("roles", [(), ("alice",), ("alice", "alice"), ("alice", "")])
def test_one_role_teaches_nobody(roles: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"name at least two|all differ"):
        CoreTeachingEnv(roles=roles)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "test"}, "choose one of train, eval, probe"),
        ({"problem": {"question": "?"}}, "give a vocabulary.Problem"),
    ],
)
def test_options_that_make_no_sense(
    make: Any, sums: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        make(source=sums).reset(seed=0, options=options)


def test_a_finished_episode_takes_no_more_steps(make: Any, problem: Problem) -> None:
    env = make()
    Played(env, RESCUE, problem=problem)
    assert env.step(RESCUE) == ({}, {}, {}, {}, {})


def test_traces_without_an_answer(make: Any, problem: Problem) -> None:
    played = Played(make(CoreTeachingSettings()), dict.fromkeys(RESCUE, ""), problem=problem)
    assert played.infos["bob_1"]["answer"] is None
    assert set(played.rewards.values()) == {0.0}
    assert played.episode["answered"] == 6
