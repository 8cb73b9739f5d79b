"""Presets against the papers' tables, written down here a second time."""

import dataclasses
from operator import attrgetter
from typing import Any

import pytest

from coterie import envs
from coterie.algorithms.algorithm import Distillation
from coterie.cli.command_line import parse
from coterie.cli.config_file import read_yaml
from coterie.datatypes import UserError
from coterie.envs.core_teaching.settings import CoreTeachingSettings
from coterie.envs.eapo_consultation.fading import acceptance
from coterie.envs.eapo_consultation.settings import fading_of
from coterie.envs.presets import known, published
from coterie.experts.naming import read_player
from coterie.experts.settings import ServerSettings
from coterie.problems.hub import HUB_SETS
from coterie.problems.prepare import prepare
from coterie.training.config.presets import lay_over
from coterie.training.config.serialize import to_plain
from coterie.training.config.train_settings import Choice, TrainSettings, defaults, restore


def settings_of(name: str, algo: str = "grpo") -> TrainSettings:
    return parse(["--preset", name, "--algo", algo])


def check(run: TrainSettings, table: str) -> None:
    """The settings of ``run`` are those of ``table``, section by section."""
    plain = run.plain()
    for section, wanted in read_yaml(table).items():
        assert {name: plain[section][name] for name in wanted} == wanted


@pytest.mark.parametrize("name", [name for name in published() if name.startswith("core-")])
def test_core_presets_equal_the_papers_settings(name: str) -> None:
    # arXiv:2601.21600, section 5, tables 3 and the reference configuration.
    run = settings_of(name)
    # The literal readings: eq. 3 as printed, no gate on correctness in eq. 6, F1 for every gold.
    # Equation 7 (population deviation), equation 20 and its coefficients. No peer distillation.
    check(
        run,
        """
        env: {k_cold: 2, k_hinted: 1, hint_probability: 0.75, hint_tokens: 1536, truncate: head,
              max_new_tokens: 3072, eval_max_new_tokens: 4096, r_teach: 0.15, delta: 0.15, cap: 10,
              alpha: 0.3, w_exploit: 1, w_explore: [0.2, 0.05], lambda_cm: [0, 0.1],
              delta_cm: 0.15, eta: 0.1, lambda_ta: 0.2, trace_accuracy: v2, lambda_b: 0.8,
              explore_mode: literal, explore_pool: question, explore_correct_only: false,
              cross_requires_correct: false, partial_on_numbers: true, prompt_style: plain,
              teacher: best, teacher_lift: 0, reread: none}
        learner: {lr: 1e-5, weight_decay: 0.01, warmup: 0.1, schedule: cosine, max_grad_norm: 1,
                  importance_correction: none, betas: [0.9, 0.999]}
        rollout: {problems_per_step: 4, temperature: 0.7, top_p: 0.9, top_k: 0,
                  learner_temperature: 1, max_prompt_tokens: 4096}
        problems: {limit: 1000}
        run: {seed: 42, group_by: problem}
        scoring: {encoder: minilm}
        algo: {baseline: group-mean, scale: group-std, ddof: 0, epsilon: 1e-8,
               surrogate: {level: token, low: 0.2, high: 0.2, dual: null}, kl_coefficient: 0.04,
               kl_estimator: k3, reduction: sequence-mean}
        """,
    )
    assert run.algo.distillation == Distillation()
    # Two epochs over 1,000, 770 (80 % of 963) or 358 (80 % of 448) problems, four a step.
    steps = {"gsm8k": 500, "math": 500, "medmcqa": 500, "aime": 385, "gpqa": 179}
    assert run.run.steps == steps[name.rpartition("-")[2]]
    for agent in run.agents.values():
        assert (agent.tuning, agent.lora_rank, agent.lora_alpha) == ("lora", 16, 32)


@pytest.mark.parametrize("name", [spec.name for spec in envs.registered()])
def test_an_environment_from_python_plays_what_train_plays(name: str) -> None:
    env: Any = envs.make(name, view="text")
    assert env.settings == parse(["--env", name]).env == envs.settings_of(name)


@pytest.mark.parametrize(
    "name",
    [
        *published(),
        "core-tiny",
        "core-gated",
        "core-reread",
        "corea-tiny",
        "eapo-tiny",
        "eapo-faded",
    ],
)
def test_a_preset_from_python_is_that_of_the_command_line(name: str) -> None:
    run = parse(["--preset", name])
    made: Any = envs.make(run.choice.env, preset=name, view="text")
    assert made.settings == run.env == envs.settings_of(run.choice.env, preset=name)


@pytest.mark.parametrize(
    ("env", "given", "sentence"),
    [
        ("sd-e2", {"preset": "core-tiny"}, "preset core-tiny is for core-teaching, not for sd-e2"),
        (
            "core-teaching",
            {"preset": "core-tny"},
            "unknown preset 'core-tny'; did you mean 'core-tiny'?",
        ),
        (
            *("core-teaching", {"preset": "core-tiny", "settings": CoreTeachingSettings()}),
            "a preset gives its settings; leave out one of the two",
        ),
    ],
)
def test_presets_that_an_environment_does_not_take(
    env: str, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        envs.make(env, **given)


def test_core_with_the_tiny_team_where_right_traces_alone_are_paid_for_distance() -> None:
    run, usual = parse(["--preset", "core-gated"]), parse([])
    assert usual.env == CoreTeachingSettings() != run.env
    published = {"k_cold": 2, "k_hinted": 1, "teacher": "best", "alpha": 0.3, "lambda_ta": 0.2}
    published |= {"w_explore": (0.2, 0.05), "lambda_cm": (0.0, 0.1), "r_teach": 0.15}
    published |= {"reread": "none", "reread_least": 0.0}
    assert run.env == dataclasses.replace(CoreTeachingSettings(), **published)
    assert run.algo.distillation == Distillation() != usual.algo.distillation
    assert (run.run.group_by, usual.run.group_by) == ("problem", "problem+role")


MINIATURES = {name: preset for name, preset in known().items() if preset.of}


@pytest.mark.parametrize("name", MINIATURES)
def test_a_miniature_is_the_papers_preset_but_for_what_it_lists(name: str) -> None:
    small, full = MINIATURES[name], known()[MINIATURES[name].of]
    assert (small.paper, small.env, small.algo, small.own) == (
        full.paper,
        full.env,
        full.algo,
        True,
    )
    for algo in ("", *full.algos):
        ours = {**small.settings, **small.algos.get(algo, {})}
        theirs = {**full.settings, **full.algos.get(algo, {})}
        assert {*theirs} - {*ours} <= {*small.at_default}
        for path, setting in ours.items():
            if setting != theirs.get(path):
                assert setting.paper, path
                assert setting.departs, path
    assert all(small.at_default.values())
    # What a run is told is what the table of departures is made from.
    run, paper = settings_of(name), settings_of(small.of)
    for path in {*small.settings} & {*full.settings}:
        if not path.startswith("agents.") and small.settings[path] == full.settings[path]:
            assert attrgetter(path)(run) == attrgetter(path)(paper)


def test_miniatures_last_as_long_as_the_papers_runs() -> None:
    core, corea, eapo = map(settings_of, ("core-tiny", "corea-tiny", "eapo-tiny"))
    # Two epochs.
    assert core.run.steps * core.rollout.problems_per_step == 2 * core.problems.epoch_size
    # What is not COREA but the tiny team.
    usual = parse(["--env", "corea-deferral", "--algo", "grpo"])
    assert (corea.problems.train, corea.run.steps, corea.learner.lr) == ("recall", 900, 2e-3)
    assert corea.agents == usual.agents
    assert corea.env.max_new_tokens == usual.env.max_new_tokens
    # The budget falls over the whole run, to that of evaluation; replies are whole.
    assert eapo.env.anneal_steps == eapo.run.steps
    assert eapo.env.reply_tokens == eapo.env.expert_max_new_tokens
    accepted = [acceptance(fading_of(eapo.env), step) for step in (1, 2, 4, 100)]
    assert accepted == [1, 0.5, 0.25, 0.01]


@pytest.mark.parametrize(("algo", "kl"), [("gspo-paper", 0.0), ("sapo-paper", 0.04), ("sapo", 0.0)])
def test_which_losses_of_appendix_c_have_a_divergence(algo: str, kl: float) -> None:
    """Equation 22 adds it, equation 21 does not; SAPO as its authors publish it has none."""
    assert settings_of("core-qwen-gsm8k", algo).algo.kl_coefficient == kl


def test_core_beside_rereading_is_the_arm_that_was_measured() -> None:
    """The preset, and what research/2026-11-controls.md compares with the default."""
    run, usual = parse(["--preset", "core-reread"]), parse([])
    arm = parse(["--env", "core-teaching", "--env.k-cold", "2", "--env.k-hinted", "1"])
    assert run.env == arm.env == dataclasses.replace(usual.env, k_cold=2, k_hinted=1)
    assert (run.algo, run.learner, run.rollout) == (arm.algo, arm.learner, arm.rollout)
    assert run.algo.distillation == usual.algo.distillation != Distillation()


def test_core_pairs_are_the_papers_models() -> None:
    qwen = settings_of("core-qwen-gsm8k").agents
    assert qwen["alice"].model == "Qwen/Qwen2.5-3B-Instruct"
    assert qwen["bob"].model == "Qwen/Qwen3-4B-Instruct-2507"
    reasoning = settings_of("core-reasoning-math").agents
    assert reasoning["alice"].model == "microsoft/Phi-4-mini-reasoning"
    assert reasoning["bob"].model == "mistralai/Ministral-3-3B-Reasoning-2512"


@pytest.mark.parametrize(
    ("data", "train"),
    [
        ("gsm8k", "gsm8k"),
        ("math", "math-8020"),
        ("aime", "aime-1983-2025"),
        ("gpqa", "gpqa-main"),
        ("medmcqa", "medmcqa"),
    ],
)
def test_core_data_are_the_papers_sets_with_their_own_test_part(data: str, train: str) -> None:
    problems = settings_of(f"core-qwen-{data}").problems
    assert (problems.train, problems.eval, problems.held_out) == (train, (), None)
    assert train in HUB_SETS


def test_the_other_objectives_of_the_paper_have_their_constants() -> None:
    gspo = settings_of("core-qwen-math", "gspo").algo
    assert to_plain(gspo.surrogate) == {
        "level": "sequence",
        "low": 3e-4,
        "high": 4e-4,
        "dual": None,
    }
    assert gspo.kl_coefficient == 0.0
    sapo = settings_of("core-qwen-math", "sapo").algo
    assert to_plain(sapo.surrogate) == {"tau_positive": 1.0, "tau_negative": 1.05}


@pytest.mark.parametrize(
    ("name", "small", "ratio", "steps"),
    [
        ("corea-qwen-7b", "Qwen/Qwen2.5-7B-Instruct", 32 / 7, 80),
        ("corea-qwen-1.5b", "Qwen/Qwen2.5-1.5B-Instruct", 32 / 1.5, 150),
        # Appendix D: table 11 is this run's checkpoint at step 30; the rate is constant.
        ("corea-qwen-1.5b-step-30", "Qwen/Qwen2.5-1.5B-Instruct", 32 / 1.5, 30),
        ("corea-llama-8b", "meta-llama/Llama-3.1-8B-Instruct", 4, 120),
    ],
)
def test_corea_presets_equal_the_papers_settings(
    name: str, small: str, ratio: float, steps: int
) -> None:
    # arXiv:2603.03752, section 4.4; the rest is its framework's.
    run = settings_of(name)
    check(
        run,
        """
        env: {traces: 8, eval_traces: 10, max_new_tokens: 4096, stop: [], confidence_reward: l1,
              p_hat: group, w_correct: 1, w_format: 1, w_confidence: 1,
              threshold_source: large-pass@1, threshold_on_test: true, output_weight: 4}
        learner: {lr: 5e-7, minibatches: 4, epochs: 1, max_grad_norm: 1, schedule: constant,
                  weight_decay: 0.01, importance_correction: none}
        rollout: {problems_per_step: 1024, temperature: 1}
        eval: {temperature: 0.6}
        problems: {train: deepmath, limit: 16000, held_out: 500}
        algo: {scale: group-std, ddof: 1, epsilon: 1e-6, reduction: token-mean,
               surrogate: {level: token, low: 0.2, high: 0.2, dual: null}, kl_coefficient: 1e-4,
               kl_estimator: k3, entropy_coefficient: 1e-3}
        """,
    )
    assert (run.env.size_ratio, run.run.steps) == (ratio, steps)
    models = {role: (agent.model, agent.trained) for role, agent in run.agents.items()}
    assert models == {"small": (small, True), "large": ("Qwen/Qwen2.5-32B-Instruct", False)}
    assert run.agents["small"].tuning == "full"


def test_coreas_large_model_is_trained_like_the_small_one() -> None:
    # Sections 4.2 and 4.4: Qwen2.5-32B, with the L1 reward, for 50 steps.
    large, small = settings_of("corea-qwen-32b"), settings_of("corea-qwen-7b")
    assert large.choice.train_role == ("large",)
    assert (large.agents["small"].trained, large.agents["large"].trained) == (False, True)
    assert large.agents["large"].model == "Qwen/Qwen2.5-32B-Instruct"
    assert (large.agents["large"].tuning, large.run.steps) == ("full", 50)
    assert to_plain(large.env) == to_plain(small.env) | {"learners": ["large"]}
    for part in ("algo", "learner", "rollout", "problems", "eval"):
        assert getattr(large, part) == getattr(small, part)
    assert restore(large.plain()) == large
    # Who learns can still be said.
    both = parse(["--preset", "corea-qwen-32b", "--train-role", "small", "large"])
    assert both.env.learners == ("small", "large")


@pytest.mark.parametrize(
    ("name", "policy", "reply", "context"),
    [
        ("eapo-r1-7b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 3072, 131_072),
        ("eapo-r1-14b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", 3072, 131_072),
        ("eapo-qwen3-8b", "Qwen/Qwen3-8B", 512, 40_960),
    ],
)
def test_eapo_presets_equal_the_papers_settings(
    name: str, policy: str, reply: int, context: int
) -> None:
    # arXiv:2509.23730, table 5; group size, clipping of lengths and weight decay are DAPO's.
    # Section 3.1: AIME 2024, AIME 2025, AIMO 2025.
    run = parse(["--preset", name])
    check(
        run,
        """
        choice: {env: eapo-consultation, algo: dapo}
        env: {experts: 3, budget: 10, budget_unit: rounds, schedule: inv, accept_scale: 1,
              accept_start: 0, accept_total: 0, turns_end: 0, anneal_steps: 320, coin: response,
              draw_before_dispatch: false, answer_reward: f1_literal, consult_penalty: 0,
              penalty_start: 0, at_once: 0, prompt_style: panel, max_new_tokens: 20480,
              expert_max_new_tokens: 16384, group_size: 16, eval_samples: 32,
              lone: 0, reread: none}
        learner: {lr: 1e-6, warmup: 10, schedule: constant, weight_decay: 0.1, max_grad_norm: 1,
                  epochs: 1, minibatches: 1, importance_correction: none}
        rollout: {problems_per_step: 32, max_prompt_tokens: 2048, temperature: 1, top_p: 1,
                  top_k: 0}
        eval: {temperature: 1, top_p: 0.7}
        problems: {train: dapo-17k, eval: [aime24, aime25, aimo2], held_out: null}
        run: {steps: 320, group_by: problem+role}
        algo: {surrogate: {level: token, low: 0.2, high: 0.28, dual: 10}, reduction: token-mean,
               kl_coefficient: 0, entropy_coefficient: 0, dynamic_sampling: true,
               baseline: group-mean, scale: group-std, ddof: 1, epsilon: 1e-6,
               max_generation_batches: 10, generation_batch: 96, overlong_limit: 20480,
               overlong_buffer: 4096, overlong_factor: 1}
        """,
    )
    # Appendix G: "The answer from the agent, including thinking process". What is kept of thirty
    # of them fits the policy's context beside table 5's prompt and response.
    env, agents = run.env, run.agents
    assert (env.reply_tokens, env.reply_thinking_tokens) == (reply, reply)
    assert 2048 + 20480 + 10 * 3 * (reply + 100) <= context
    assert (agents["policy"].model, agents["policy"].tuning) == (policy, "full")
    assert (agents["policy"].trained, agents["expert"].trained) == (True, False)
    assert agents["expert"].model.startswith("server:http://127.0.0.1:8000/v1?model=expert")
    expert = read_player(agents["expert"].model)
    assert isinstance(expert, ServerSettings)
    assert not expert.strip_thinking
    assert expert.max_reply_tokens == expert.max_tokens == 16384


@pytest.mark.parametrize(
    ("name", "train", "limit"),
    [
        ("sd-e2-gsm8k", "gsm8k", None),
        ("sd-e2-medmcqa", "medmcqa", 7500),
        ("sd-e2-math", "math-8020", None),
        ("sd-e2-aime", "aime-1983-2025", None),
        ("sd-e2-gpqa", "gpqa-main", None),
        ("sd-e2-reasoning-math", "math-8020", None),
        ("sd-e2-qwen-7b-gsm8k", "gsm8k", None),
        ("sd-e2-phi-7b-aime", "aime-1983-2025", None),
        ("sd-e2-ministral-8b-gpqa", "gpqa-main", None),
    ],
)
def test_sd_e2_presets_equal_the_public_configuration(
    name: str, train: str, limit: int | None
) -> None:
    # arXiv:2601.17982: group of six, four equal weights, LoRA of rank 64 with alpha 16.
    # Evaluated as CoRe is: arXiv:2601.21600, section 5.2 and its reference configuration.
    run = parse(["--preset", name])
    check(
        run,
        """
        choice: {env: sd-e2, algo: grpo, roles: [alice]}
        env: {traces: 6, max_new_tokens: 1536, prompt_style: strategies, normalise: true,
              w_outcome: 1, w_explore: 1, w_exploit: 1, w_format: 1, gamma_correct: 1,
              gamma_rate: 0.1, gamma_cap: 0.5, same_above: 0.8, format_strategy: 0.2,
              format_answer: 0.3, format_complete: 0.1, eval_max_new_tokens: 4096}
        eval: {temperature: 0.7, top_p: 0.9}
        learner: {lr: 5e-6}
        rollout: {problems_per_step: 1, temperature: 0.1, top_p: 0.95}
        run: {steps: 7500}
        scoring: {encoder: minilm}
        """,
    )
    core = "env: {eval_max_new_tokens: 4096}\nrollout: {temperature: 0.7, top_p: 0.9}"
    check(settings_of("core-qwen-gsm8k"), core + "\neval: {temperature: null, top_p: null}")
    assert (run.problems.train, run.problems.limit) == (train, limit)
    alice = run.agents["alice"]
    assert (alice.tuning, alice.lora_rank, alice.lora_alpha) == ("lora", 64, 16)


@pytest.mark.parametrize(
    ("name", "models"),
    [
        # CoRe's tables 1, 2 and 4.
        ("sd-e2-gsm8k", ("Qwen/Qwen2.5-3B-Instruct", "Qwen/Qwen3-4B-Instruct-2507")),
        (
            "sd-e2-reasoning-gsm8k",
            ("microsoft/Phi-4-mini-reasoning", "mistralai/Ministral-3-3B-Reasoning-2512"),
        ),
        ("sd-e2-qwen-7b-gsm8k", ("Qwen/Qwen2.5-7B-Instruct",)),
        ("sd-e2-phi-7b-gsm8k", ("microsoft/Phi-3-small-8k-instruct",)),
        ("sd-e2-ministral-8b-gsm8k", ("mistralai/Ministral-3-8B-Reasoning-2512",)),
    ],
)
def test_sd_e2s_models_are_those_of_cores_tables(name: str, models: tuple[str, ...]) -> None:
    roles = ("alice", "bob")[: len(models)]
    agents = parse(["--preset", name, "--roles", *roles]).agents
    assert tuple(agents[role].model for role in roles) == models
    assert not agents["alice"].trust_remote_code


def test_eapos_competition_file_is_asked_for_before_anything_is_fetched() -> None:
    sentence = "aimo2 is a competition file: .* in place of aimo2; or leave it out"
    with pytest.raises(UserError, match=sentence):
        prepare(parse(["--preset", "eapo-r1-7b"]).problems)


@pytest.mark.parametrize("name", published())
def test_every_preset_names_settings_that_exist(name: str) -> None:
    chosen = published()[name]
    assert chosen.settings["learner.betas"].value == (0.9, 0.999)  # PyTorch's
    roles = tuple(chosen.models)
    for algo in (chosen.algo, *chosen.algos):
        choice = Choice(chosen.env, algo, roles, chosen.train_role, preset=name)
        lay_over(chosen, defaults(choice))
