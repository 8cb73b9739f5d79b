"""The plan of a run: bytes by hand, against what a CPU really holds, and what is refused."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import AutoConfig, AutoModelForCausalLM

from coterie import train
from coterie.agents.models.number_format import native_bfloat16
from coterie.agents.models.papers import CONFIGS
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.cli.command_line import parse
from coterie.extras.ops import checks
from coterie.extras.ops import plan as planning
from coterie.extras.ops.footprint import Load, footprint, measure, with_layers
from coterie.extras.ops.plan import GIB, plan
from coterie.extras.ops.plan_hours import rows_of
from coterie.extras.ops.plan_report import describe, make_fit, ways_out, why_not

TINY = Path(__file__).parents[3] / "agents" / "models" / "tiny" / "alice"
SHAPE: dict[str, Any] = {
    "model_type": "qwen3",
    "vocab_size": 4096,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "tie_word_embeddings": True,
    "max_position_embeddings": 4096,
    "eos_token_id": 1,
}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # What the hub says of them.
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen3-4B-Instruct-2507", 4_022_468_096),
    ],
)
def test_weights_are_counted_from_the_configuration(name: str, count: int) -> None:
    config = AutoConfig.for_model(**CONFIGS[name])
    memory = footprint(config, ModelSpec(name), None, torch.bfloat16)
    assert (memory.parameters, memory.weights) == (count, 2 * count)
    assert memory.trained == memory.activations == 0


def test_learning_takes_sixteen_bytes_a_weight_or_an_adapter() -> None:
    config, load = AutoConfig.for_model(**SHAPE), Load(512, 128, 64)
    # 4,096 x 128 embeddings, tied; a block: 128 x 128 (q), twice 64 x 128 (k, v), 128 x 128 (o),
    # 3 x 384 x 128, norms 128 + 128 + 32 + 32; the last norm 128.
    count = 4096 * 128 + 8 * (2 * 128**2 + 2 * 64 * 128 + 3 * 384 * 128 + 320) + 128
    full = footprint(config, ModelSpec("x"), load, torch.bfloat16)
    assert (full.parameters, full.weights, full.trained) == (count, 4 * count, 4 * count)
    # Rank 4 on q, k, v, o, gate, up, down: 4 numbers for each input and each output.
    rank = 4 * (256 + 192 + 192 + 256 + 3 * 512) * 8
    lora = footprint(config, ModelSpec("x", lora=LoraSpec(4)), load, torch.bfloat16)
    assert (lora.weights, lora.trained) == (2 * count, 4 * rank)
    # 8 layers of keys and values, 2 heads of 32 numbers each, two bytes a number.
    assert lora.cache_per_token == 8 * 2 * 2 * 32 * 2


def test_a_start_that_rows_share_counts_once() -> None:
    # 8 rows of 1,429 tokens, 1,381 of them alike: 1,381 + 8 * 48.
    step = Load(20_000, 1429, 48, most=8, prompt=1381, starts=1 / 8)
    assert (step.rows, step.computed) == (8, 1765)
    # As many as fit: 11 * 1,381 + 88 * 48 = 19,415; an 89th row needs a twelfth start.
    many = dataclasses.replace(step, most=1000)
    assert (many.rows, many.computed) == (88, 19_415)
    apart = dataclasses.replace(step, starts=1.0)
    assert (apart.rows, apart.computed) == (8, 11_432)
    config = AutoConfig.for_model(**SHAPE)
    spec = ModelSpec("x", recompute="never")
    taken = [footprint(config, spec, load, torch.bfloat16).activations for load in (step, apart)]
    # Activations go with the tokens that are computed, logits with those that are scored.
    assert 1765 / 11_432 < taken[0] / taken[1] < 0.3


@pytest.mark.parametrize(
    ("flags", "role", "rows", "starts"),
    [
        # Six traces of one problem.
        (("--preset", "sd-e2-gsm8k"), "alice", 6, 1 / 6),
        # Of three traces a role two are cold; the third may see a hint. 16 problems a step.
        (("--preset", "core-gated"), "alice", 48, 2 / 3),
        # Three cold traces, and no second round.
        ((), "bob", 48, 1 / 3),
        # A policy of 16 replicas, and 32 problems.
        (("--preset", "eapo-r1-7b"), "policy", 512, 1 / 16),
        # Who is asked last reads what others wrote; each of eight replicas something else.
        (("--env", "examples.debate:SPEC", "--agents.judge.model", "tiny:bob"), "judge", 128, 1.0),
    ],
)
def test_who_shares_a_prompt_is_seen_from_the_environment(
    flags: tuple[str, ...], role: str, rows: int, starts: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    assert rows_of(parse(list(flags)), role) == (rows, pytest.approx(starts))


def test_recomputing_takes_less_and_more_layers_take_more() -> None:
    load = Load(1024, 256, 128)

    def update(layers: int, recompute: str) -> int:
        config = AutoConfig.for_model(**{**SHAPE, "num_hidden_layers": layers})
        spec = ModelSpec("x", recompute=recompute)  # type: ignore[arg-type]
        return footprint(config, spec, load, torch.bfloat16).activations

    assert update(8, "always") < update(8, "never") / 2
    # A block's input is kept, and nothing else: 128 numbers of two bytes of 1,024 tokens, but for
    # the last of each of two long rows, which predicts nothing.
    assert update(9, "always") - update(8, "always") == 1022 * 128 * 2


def model_folder(folder: Path, weights: bool = True, **changed: int) -> Path:
    """A model of random weights with the tiny team's tokenizer; without weights, its config."""
    config = AutoConfig.for_model(**{**SHAPE, **changed})
    config.save_pretrained(folder)
    if weights:
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (folder / name).write_bytes((TINY / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's config; what was measured of it once is known to later plans."""
    return model_folder(tmp_path_factory.mktemp("shared") / "model", weights=False)


def flags(folder: Path, *more: str) -> tuple[str, ...]:
    who = ("--roles", "alice", "--agents.alice.model", str(folder))
    return ("--env", "sd-e2", "--algo", "grpo", *who, *more)


def test_a_plan_is_printed_without_weights(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(flags(shared, "--plan", "--card", "24")) == 0
    said = capsys.readouterr().out
    assert "cuda:0, 24.0 GiB" in said
    assert "peak: it fits" in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.slow
def test_what_does_not_fit_is_told_with_flags_that_make_it_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model_folder(tmp_path / "model", weights=False, num_hidden_layers=48)
    large = ("--agents.alice.tuning", "full", "--learner.micro-batch-tokens", "32768")
    given = flags(folder, *large, "--agents.alice.recompute", "never", "--plan")
    settings = parse([*given])
    most = plan(settings, 80).devices[0].most
    smaller, size = make_fit(settings, 0.9 * most / GIB, plan(settings, 0.9 * most / GIB))
    assert smaller == ["--agents.alice.recompute always"]
    changed = [*given[:-3], *" ".join(smaller).split(), "--plan"]
    assert plan(parse(changed), 80).devices[0].most == size < 0.9 * most
    assert train.main([*given, "--card", f"{0.9 * most / GIB:.4f}"]) == 1
    assert "--agents.alice.recompute always makes it fit" in capsys.readouterr().out
    assert make_fit(settings, 0.3, plan(settings, 0.3)) == ([], 0)


def test_a_run_that_leaves_a_card_no_gaps_is_told_the_flag_too(shared: Path) -> None:
    settings = parse(flags(shared, "--engine", "vllm", "--vllm.gpu-memory", "0.8"))
    # The engine takes .8 of the card, and the rest more than .15 of it, but less than .2.
    rest = plan(settings, 24).devices[0].most - int(0.8 * 24 * GIB)
    card = rest / 0.18 / GIB
    tight = plan(settings, card)
    assert 0.95 < tight.devices[0].most / tight.devices[0].card < 1  # type: ignore[operator]
    smaller, size = make_fit(settings, card, tight)
    assert len(smaller) == 1
    assert size <= 0.95 * card * GIB
    said = why_not(settings, tight, card)
    assert f"which has {card:.1f} GiB and can give {0.95 * card:.1f}: {smaller[0]} makes" in said


def test_a_run_that_cannot_fit_is_refused_before_its_models_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "card_bytes", lambda device: GIB // 2)
    monkeypatch.setattr("coterie.extras.ops.checks._SMALL", 0)
    # Nothing that it might be told would help.
    least = ("--learner.micro-batch-tokens", "1024", "--agents.alice.recompute", "always")
    given = flags(model_folder(tmp_path / "model"), *least, "--run-dir", str(tmp_path / "r"))
    assert train.main(given) == 2
    assert "GiB on cpu, which has 0.5 GiB, and no flag" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_large_teacher_of_a_small_role_is_planned_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr("coterie.extras.ops.plan_report.check_plan", seen.append)
    weights = (TINY / "model.safetensors").stat().st_size
    monkeypatch.setattr("coterie.extras.ops.checks._SMALL", weights + 1)
    teacher = shutil.copytree(TINY, tmp_path / "teacher")
    solo = "--env solo --algo gspo --agents.solver.model tiny:alice --problems.train chains"
    taught = f"--algo.distillation.beta 1 --algo.distillation.teacher {teacher}"
    settings = parse(f"{solo} {taught}".split())
    checks.check(settings)
    assert not seen
    (teacher / "model-2.safetensors").write_bytes(b"..")
    checks.check(settings)
    assert seen == [settings]


def test_a_model_whose_weights_are_not_here_yet_is_no_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "hub_snapshot", lambda spec: tmp_path)
    assert not checks._is_small(ModelSpec("org/model"))
    (tmp_path / "model.safetensors").write_bytes(b"..")
    assert checks._is_small(ModelSpec("org/model"))


def test_engines_take_their_share_and_sleep(shared: Path) -> None:
    more = ("--engine", "vllm", "--vllm.gpu-memory", "0.5")
    awake = plan(parse([*flags(shared, *more)]), 24).devices[0]
    asleep = plan(parse([*flags(shared, *more, "--vllm.sleep-level", "1")]), 24).devices[0]
    shares = [part for part in awake.parts if part.what == "engine, alice"]
    assert [(part.size, part.when) for part in shares] == [(12 * GIB, "always")]
    learning = sum(part.size for part in awake.parts if part.when == "learning")
    assert awake.most - asleep.most == learning


def engines(settings: Any, card: float) -> dict[str, list[int]]:
    """Device -> bytes of its engines."""
    return {
        device.device: [part.size for part in device.parts if part.kind == "engine"]
        for device in plan(settings, card).devices
    }


def test_an_engine_over_several_gpus_takes_its_part_of_each(shared: Path) -> None:
    given = flags(shared, "--engine", "vllm", "--agents.alice.engine-device", "cuda:1")
    # Of so small a share the weights and one context are more.
    given = (*given, "--vllm.gpu-memory", "1e-6")
    alone = engines(parse(given), 24)
    spread = engines(parse([*given, "--agents.alice.tensor-parallel", "4"]), 24)
    assert alone == {"cuda:0": [], "cuda:1": [alone["cuda:1"][0]]}
    (size,) = alone["cuda:1"]
    each = [pytest.approx(size / 4, abs=2)]
    assert spread == {"cuda:0": [], **dict.fromkeys(("cuda:1", "cuda:2", "cuda:3", "cuda:4"), each)}


@pytest.mark.parametrize(
    ("more", "learner", "apart"),
    [
        ("engine-replicas 1", "GPU of alice", "GPU of the engine of alice"),
        ("engine-replicas 2", "GPU of alice", "each of 2 GPUs of the engines of alice"),
        ("learner-devices 4", "each of 4 GPUs of alice", "GPU of the engine of alice"),
    ],
)
def test_engines_apart_from_the_learner_have_gpus_of_their_own(
    more: str, learner: str, apart: str, shared: Path
) -> None:
    given = flags(shared, "--agents.alice.tuning", "full", *f"--agents.alice.{more}".split())
    share = ("--engine", "vllm", "--vllm.gpu-memory", "0.75")
    assert engines(parse([*given, *share]), 24) == {learner: [], apart: [18 * GIB]}
    # The sampler of this program holds the weights there again.
    kinds = {d.device: {part.kind for part in d.parts} for d in plan(parse(given), 24).devices}
    assert set(kinds) == {learner, apart}
    assert {"weights", "moments"} <= kinds[learner]
    assert "cache and logits of a batch" in kinds[apart] - kinds[learner]
    assert "weights" in kinds[apart]
    assert "moments" not in kinds[apart]


def pair(folder: Path, *more: str) -> list[str]:
    """Flags of two roles with engines of vLLM."""
    words = ["--env", "sd-e2", "--algo", "grpo", "--roles", "alice", "bob", "--engine", "vllm"]
    return [*words, "--agents.alice.model", str(folder), "--agents.bob.model", str(folder), *more]


def test_every_process_of_a_cluster_has_a_gpu_of_its_own(shared: Path) -> None:
    words = pair(shared, "--agents.bob.no-trained", "--agents.bob.tensor-parallel", "2")
    words += ["--agents.alice.tuning", "full", "--vllm.gpu-memory", "0.5"]
    both = engines(parse([*words, "--cluster.address", "local"]), 24)
    half = [12 * GIB]
    assert both == {"GPU of alice": half, "each of 2 GPUs of the engine of bob": half}
    assert engines(parse(words), 24) == {"cuda:0": [*half, *half], "cuda:1": half}


def ways(settings: Any) -> dict[str, Any]:
    """Flags that need less memory -> the settings that they give."""
    return dict(ways_out(settings, plan(settings, 24)))


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("", ()),
        ("--rollout.overlap", ("--vllm.sleep-level 1", "--engine local")),
        ("--agents.alice.device cpu", ("--vllm.sleep-level 1",)),
        ("--agents.alice.engine-device cuda:1", ("--engine local",)),
        ("--agents.alice.tensor-parallel 2", ("--engine local",)),
        ("--agents.bob.engine-replicas 1", ("--vllm.sleep-level 1", "--agents.bob.dtype nf4")),
        (
            "--agents.alice.learner-devices 2",
            ("--vllm.sleep-level 1", "--learner.moments 8bit"),
        ),
        ("--vllm.sleep-level 2", ("--vllm.sleep-level 1", "--agents.alice.tuning lora")),
    ],
)
def test_flags_that_a_run_refuses_are_no_way_out(
    given: str, missing: tuple[str, ...], shared: Path
) -> None:
    words = pair(shared, "--agents.alice.tuning", "full")
    every = {"--vllm.sleep-level 1", "--engine local", "--learner.moments 8bit"}
    every |= {"--agents.alice.tuning lora", "--agents.bob.dtype nf4"}
    assert every & ways(parse([*words, *given.split()])).keys() == every - set(missing)


def test_engines_take_turns_where_they_share_a_gpu(shared: Path) -> None:
    words = pair(shared)
    turns = "--vllm.sleep-level 1 --vllm.time-share"
    assert turns in ways(parse(words))
    assert turns not in ways(parse([*words, "--agents.bob.engine-device", "cuda:1"]))


def test_moments_of_eight_bits_take_a_quarter_and_help_full_weights(shared: Path) -> None:
    full = [*flags(shared, "--agents.alice.tuning", "full")]
    for given, share in (((), 2), (("8bit",), 0.5), (("paged-8bit",), 0)):
        more = [word for kind in given for word in ("--learner.moments", kind)]
        sizes = {p.kind: p.size for p in plan(parse([*full, *more]), 24).devices[0].parts}
        # Float32 weights, with gradients of their size.
        assert sizes["moments"] == share * sizes["gradients"]
        assert sizes["gradients"] == sizes["weights"] > 0
    assert "--learner.moments 8bit" in ways(parse(full))


def test_four_bits_a_weight_help_lora(shared: Path) -> None:
    lora = flags(shared, "--agents.alice.tuning", "lora")
    settings = ways(parse(lora))["--agents.alice.dtype nf4"]
    full, less = (
        {p.kind: p.size for p in plan(given, 24).devices[0].parts}
        for given in (parse(lora), settings)
    )
    assert less["weights"] < full["weights"]
    same = full.keys() - {"weights", "activations and logits", "cache and logits of a batch"}
    assert all(full[kind] == less[kind] for kind in same)
    assert not any("nf4" in way for way in ways(settings))


def test_frozen_roles_of_one_model_count_its_weights_once(shared: Path) -> None:
    roles = ("alice", "bob", "carol")
    words = ["--env", "sd-e2", "--algo", "grpo", "--roles", *roles, "--agents.alice.tuning", "full"]
    for role in roles:
        words += [f"--agents.{role}.model", str(shared)]
    words += ["--agents.bob.no-trained", "--agents.carol.no-trained"]
    (device,) = plan(parse(words), 24).devices
    held = [part.what for part in device.parts if part.kind == "weights"]
    assert held == ["weights, alice", "weights, bob"]


def test_shards_take_their_part_of_weights_gradients_and_moments(shared: Path) -> None:
    full = flags(shared, "--agents.alice.tuning", "full")
    (alone,) = plan(parse(full), 80).devices
    shard, engine = plan(parse([*full, "--agents.alice.learner-devices", "4"]), 80).devices
    sizes, parts = ({p.what: p.size for p in device.parts} for device in (alone, shard))
    for what in ("weights", "moments", "gradients"):
        assert parts[f"{what}, alice"] == sizes[f"{what}, alice"] // 4 > 0
    assert parts["gathered from all, alice"] > 0
    assert shard.device == "each of 4 GPUs of alice"
    # It computes in bfloat16, and is held so where it only answers; here it was not told to.
    assert engine.device == "GPU of the engine of alice"
    assert {p.what: p.size for p in engine.parts}["weights, alice"] == sizes["weights, alice"]


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        (("--algo.kl-coefficient", "0.1"), 1),
        # Under the weights of this moment, and of before training.
        (("--algo.kl-in-reward", "0.1"), 2),
        # After the other context, and after one's own.
        (("--algo.distillation.beta", "1", "--algo.distillation.likeliest", "64"), 2),
        (("--algo.distillation.beta", "1", "--algo.distillation.reader", "start"), 2),
        (("--algo.distillation.beta", "1", "--algo.distillation.fade", "0.5"), 1),
    ],
)
def test_every_reading_of_a_step_takes_its_time(
    given: tuple[str, ...], passes: int, shared: Path
) -> None:
    common = flags(
        shared, "--learner.epochs", "2", "--steps", "9", "--rollout.max-prompt-tokens", "80"
    )
    more, plain = (plan(parse([*common, *flags]), 24) for flags in (given, ()))
    role = plain.roles["alice"]
    # Twice a weight and token, by 40 % of what an RTX 4090 computes; whatever the epochs.
    reading_h = 9 * 2 * role.rows * role.longest * role.memory.parameters / (0.4 * 165e12) / 3600
    assert more.hours - plain.hours == pytest.approx(passes * reading_h)


@pytest.mark.parametrize(("tuning", "each"), [("lora", 4), ("full", 6)])
def test_a_warm_up_takes_its_time(tuning: str, each: int, shared: Path) -> None:
    common = flags(shared, "--steps", "9", "--agents.alice.tuning", tuning)
    warm = ("--warmup.steps", "50", "--warmup.problems-per-step", "12")
    nobody = (*warm, "--agents.alice.warmup", "none")
    plain, warmed, left_out = (plan(parse([*common, *more]), 24) for more in ((), warm, nobody))
    role = plain.roles["alice"]
    each += 2 * role.memory.recomputes
    # Solutions are read once, forward and backward, by 40 % of what an RTX 4090 computes.
    warm_up_h = 50 * 12 * each * role.longest * role.memory.parameters / (0.4 * 165e12) / 3600
    assert warmed.hours - plain.hours == pytest.approx(warm_up_h)
    assert left_out.hours == plain.hours
    report = describe(parse([*common, *warm]), warmed)
    assert "50 steps of imitation and 9 steps: at most" in report
    assert "imitation" not in describe(parse(common), plain)


@pytest.mark.parametrize(("dtype", "peak"), [("float32", 2e11), ("bfloat16", 8e11)])
def test_a_cpu_multiplies_longer_than_it_reads_and_longest_in_float32(
    dtype: str, peak: float, shared: Path
) -> None:
    cpu = ("--agents.alice.device", "cpu", "--agents.alice.dtype", dtype)
    cpu = (*cpu, "--rollout.problems-per-step", "32", "--rollout.max-prompt-tokens", "16")
    hours = [plan(parse([*flags(shared, *cpu, "--steps", str(n))]), None).hours for n in (1, 2)]
    role = plan(parse([*flags(shared, *cpu)]), None).roles["alice"]
    # A weight and token: twice to sample it, twice forward and twice backward without gradients of
    # the frozen base, and twice to recompute; each by 40 % of the products of two cores.
    learned = (4 + 2 * role.memory.recomputes) * role.longest
    sampled = 2 * (role.prompt + role.answer)
    work = role.rows * (learned + sampled) * role.memory.parameters
    assert hours[1] - hours[0] == pytest.approx(work / (0.4 * peak) / 3600)


def test_a_gpu_computes_longer_in_float32(shared: Path) -> None:
    common = flags(shared, "--agents.alice.tuning", "lora", "--agents.alice.recompute", "never")
    common += ("--rollout.problems-per-step", "32", "--rollout.max-prompt-tokens", "16")
    common += ("--env.max-new-tokens", "32", "--agents.alice.dtype")
    half, full = (plan(parse([*common, name]), 80) for name in ("bfloat16", "float32"))
    role = full.roles["alice"]
    # An A100. So many short rows take longer to multiply than to read, as on a CPU.
    tokens = (
        parse(common[:-1]).run.steps
        * role.rows
        * (4 * role.longest + 2 * (role.prompt + role.answer))
    )
    assert full.hours == pytest.approx(tokens * role.memory.parameters / (0.4 * 19.5e12) / 3600)
    assert full.hours > 4 * half.hours


@pytest.mark.parametrize(
    ("more", "times"),
    [
        ("--steps 100 --eval.every 0", 2),
        # That of step 100 is the one after training.
        ("--steps 100 --eval.every 50", 3),
        ("--steps 101 --eval.every 50", 4),
        ("--steps 100 --eval.every 30 --warmup.steps 10", 6),
    ],
)
def test_evaluations_are_counted_as_a_run_makes_them(more: str, times: int, shared: Path) -> None:
    planned = plan(parse([*flags(shared, "--problems.train", "chains"), *more.split()]), 24)
    assert planned.evaluation is not None
    assert planned.evaluation.times == times


def test_of_a_given_adapter_what_it_was_before_training_is_kept(tmp_path: Path) -> None:
    base = model_folder(tmp_path / "model", weights=False)
    layers = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    given = LoraConfig(r=16, base_model_name_or_path=str(base), target_modules=layers)
    given.save_pretrained(str(tmp_path / "adapter"))
    (tmp_path / "adapter/adapter_model.safetensors").touch()
    for model, copies in ((base, 0), (tmp_path / "adapter", 1)):
        settings = parse([*flags(model, "--algo.kl-coefficient", "0.1")])
        sizes = {part.what: part.size for part in plan(settings, 24).devices[0].parts}
        # 16 numbers for each input and each output, as above.
        assert sizes["adapter, alice"] == 4 * 16 * (256 + 192 + 192 + 256 + 3 * 512) * 8
        assert sizes.get("earlier weights, alice", 0) == copies * sizes["adapter, alice"]


def test_models_of_a_pool_are_planned() -> None:
    pool = "pool:tiny:policy|tiny:expert"
    settings = parse(["--env", "eapo-consultation", "--plan", "--agents.expert.model", pool])
    assert list(plan(settings, 24).roles) == ["policy", "expert|0", "expert|1"]


def test_a_teacher_takes_memory_and_time_to_read() -> None:
    usual = ("--env", "solo", "--agents.solver.model", "tiny:alice", "--plan")
    taught = ("--algo.distillation.beta", "1", "--algo.distillation.teacher", "tiny:large")
    without, planned = plan(parse(usual), 24), plan(parse([*usual, *taught]), 24)
    teacher = planned.roles["solver|teacher"]
    weights = [p.size for p in planned.devices[0].parts if p.whose == "solver|teacher"]
    assert weights == [teacher.memory.weights]
    # The pupil reads its rows once more, for its own probabilities.
    assert planned.hours > without.hours
    assert planned.evaluation == without.evaluation
    assert "rows" not in describe(parse([*usual, *taught]), planned).partition("|teacher")[2][:90]


def test_settings_of_the_plan_are_no_settings_of_a_run() -> None:
    settings = parse(["--plan", "--card", "24"])
    assert not {"plan", "card"} & settings.plain()["run"].keys()
    assert "prompt" in describe(settings, plan(settings, 24))
    assert "on an H200" in describe(settings, plan(settings, 1e30))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--plan", "--card", "0"), "--card is 0.0; it must be above 0"),
        (("--card", "24"), "--card is for --plan"),
        (("--plan", "--agents.alice.model", "./nowhere"), "no model folder './nowhere'"),
    ],
)
def test_mistakes(given: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(given) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("a.jsonl=1000", "b.jsonl=1"), "has none of b.jsonl: raise its weight"),
        (("a.jsonl", "gsm8k?splitt=test"), "gsm8k has no option 'splitt'"),
        (("a.jsonl", "--problems.eval", "math500=2"), "evaluation sets have no weights"),
    ],
)
def test_problems_that_a_run_refuses_have_no_plan(
    given: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: Any, refused: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    for name, sign in (("a", "+"), ("b", "-")):
        rows = [{"question": f"{n} {sign} 0 =", "answer": str(n)} for n in range(9)]
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    held_out = ("--problems.held-out", "2")
    assert said in refused(train.main, "--plan", "--problems.train", *given, *held_out)


def test_problems_that_lie_elsewhere_are_planned_unread(
    tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    evaluations = "2 evaluations of {} problems"
    unknown = "evaluations are not planned"
    where = ("--problems.train", "chains", "--problems.eval", "a.jsonl", "gsm8k")
    assert train.main(["--plan", *where, "--card", "24"]) == 0
    assert unknown in capsys.readouterr().out
    rows = [{"question": f"{n} + 0 =", "answer": str(n)} for n in range(9)]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert train.main(["--plan", *where, "--card", "24"]) == 0
    assert unknown in capsys.readouterr().out
    # What is here is read, and counted.
    assert train.main(["--plan", *where[:-1], "--card", "24"]) == 0
    assert evaluations.format(9) in capsys.readouterr().out


def test_a_configuration_that_means_nothing_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model_folder(tmp_path / "model", weights=False)
    config = json.loads((folder / "config.json").read_text()) | {"hidden_size": "big"}
    (folder / "config.json").write_text(json.dumps(config))
    assert train.main(flags(folder, "--plan", "--card", "24")) == 2
    said = capsys.readouterr().err
    assert f"no plan without the config.json of '{folder}'" in said
    assert "'hidden_size' expected int, got str" in said
    assert said.count("\n") == 1


_RUN = """
import sys
from coterie.train import main
code = main(sys.argv[1:])
# Not getrusage, whose maximum a process begins with that of the one that started it.
print("most", next(line.split()[1] for line in open("/proc/self/status") if "VmHWM" in line))
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("tuning", "dtype"), [("full", "float32"), ("lora", "bfloat16")])
def test_a_run_on_a_cpu_takes_what_was_planned(tuning: str, dtype: str, tmp_path: Path) -> None:
    if dtype == "bfloat16" and native_bfloat16() is None:
        pytest.skip("products of 16 bits are emulated here, in float32")
    folder = model_folder(tmp_path / "model", hidden_size=256, intermediate_size=1024)
    given = flags(folder, "--agents.alice.tuning", tuning, "--steps", "2", "--eval.no-enabled")
    given += ("--rollout.problems-per-step", "4", "--env.max-new-tokens", "384")
    given += ("--problems.train", "chains", "--run-dir", str(tmp_path / "run"))
    given += ("--learner.no-skip-idle-rows", "--agents.alice.dtype", dtype)
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, *given],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    took = int(ran.stdout.split()[-1]) * 1024
    rows = [json.loads(line) for line in (tmp_path / "run/episodes.jsonl").read_text().splitlines()]
    assert rows
    device = plan(parse([*given]), None, 40).devices[0]
    assert device.most == pytest.approx(took, rel=0.15)


def test_frequencies_that_depend_on_the_length_are_fixed_as_for_a_run() -> None:
    config = AutoConfig.for_model(**CONFIGS["microsoft/Phi-4-mini-reasoning"])
    load = Load(8192, 4096, 3072)
    memory = footprint(
        config, ModelSpec("x", lora=LoraSpec(), recompute="always"), load, torch.bfloat16
    )
    # 32 blocks' inputs: 8,190 tokens of 3,072 numbers of two bytes, and something above them.
    inputs = 32 * 8190 * 3072 * 2
    assert inputs < memory.activations < 2.5 * inputs


@pytest.mark.parametrize(
    ("kind", "names"), [("gpt2", ("n_embd", "n_layer", "n_head")), ("olmo2", ())]
)
def test_models_whose_rows_are_padded_are_measured_too(kind: str, names: tuple[str, ...]) -> None:
    sizes = dict(zip(names, (128, 8, 4))) if names else {**SHAPE}
    sizes.pop("model_type", None)
    config = AutoConfig.for_model(kind, **sizes)
    spec, load = ModelSpec("x", recompute="always"), Load(1024, 256, 128)
    # A block's input: 1,024 tokens of 128 numbers in float32.
    two, three = (measure(with_layers(config, n), spec, load, torch.float32) for n in (2, 3))
    assert three - two == 1024 * 128 * 4
