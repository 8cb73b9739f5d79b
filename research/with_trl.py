"""A run of ``solo`` with GSPO again, by TRL's GRPOTrainer: the same weights, problems in
the same order, prompt, reward, adapter, lengths, rate and number of steps.

    pip install -e ".[test]"
    python research/with_trl.py RUN --out runs/trl

TRL computes in bfloat16 if the processor has it, else in float32. Its adapter goes to
OUT/adapter, those between to OUT/checkpoint-STEP, the figures of each step to OUT/steps.jsonl.
``python train.py --evaluate RUN --agents.solver.model OUT/adapter`` then answers the held-out
problems of RUN. The same command goes on from the last checkpoint in OUT.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

# As train.py has it; before torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "4000")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from coterie.agents.models.locate import local_folder
from coterie.agents.models.lora import resolve_targets
from coterie.agents.models.number_format import number_format_of
from coterie.agents.models.rendering import render
from coterie.agents.team.graders import build_scorer
from coterie.agents.team.model_specs import model_spec
from coterie.algorithms import ALGORITHMS
from coterie.algorithms.overlong import overlong_term
from coterie.datatypes import Problem, UserError, refuse
from coterie.evaluation.compare.inherited_settings import run_settings
from coterie.problems.prepare import prepare
from coterie.training.config.model_defaults import answers_of_step
from coterie.training.config.train_settings import TrainSettings

ROLE = "solver"


class Rewards:
    """Grade completions as the run did, and keep what a step sampled."""

    __name__ = "right_and_short"

    def __init__(self, settings: TrainSettings, problems: Sequence[Problem]) -> None:
        self._scorer = build_scorer(settings.scoring)
        self._problems, self._algorithm = problems, settings.algorithms.of(ROLE)
        self.tokens, self.right, self.stated = 0, [], []

    def __call__(
        self, completions: Any, completion_ids: Any, index: list[int], **_: object
    ) -> list[float | None]:
        verdicts = [
            self._scorer.check(text, self._problems[place])
            for text, place in zip(completions, index, strict=True)
        ]
        self.tokens += sum(map(len, completion_ids))
        self.right += [float(verdict.correct) for verdict in verdicts]
        self.stated += [verdict.answer is not None for verdict in verdicts]
        return [
            float(verdict.credit) + overlong_term(len(ids), self._algorithm)
            for verdict, ids in zip(verdicts, completion_ids, strict=True)
        ]


class Log(TrainerCallback):
    """Write a line a step: sampled tokens so far, rewards, and seconds of training."""

    def __init__(self, rewards: Rewards, path: Path) -> None:
        self._rewards, self._path = rewards, path

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        kept = text.splitlines(keepends=True)[: state.global_step]
        self._path.write_text("".join(kept), encoding="utf-8")
        before = json.loads(kept[-1]) if kept else {"tokens": 0, "wall_s": 0.0, "cpu_s": 0.0}
        self._rewards.tokens = before["tokens"]
        self._clock = time.perf_counter() - before["wall_s"]
        self._used = time.process_time() - before["cpu_s"]

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        seen = self._rewards
        line = {
            "step": state.global_step,
            "tokens": seen.tokens,
            "right": sum(seen.right) / len(seen.right),
            "stated": sum(seen.stated) / len(seen.stated),
            "wall_s": round(time.perf_counter() - self._clock, 1),
            "cpu_s": round(time.process_time() - self._used, 1),
        }
        seen.right, seen.stated = [], []
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--steps", type=int, help="default: as many as the run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--out", type=Path, required=True, help="a new folder, or one with checkpoints"
    )
    parser.add_argument("--save-every", type=int, default=5, help="steps between checkpoints")
    chosen = parser.parse_args(argv)
    try:
        settings = run_settings(chosen.run)
        if settings is None:
            raise UserError("it is no run of train.py")
        refuse_others(settings)
    except UserError as error:
        parser.error(f"{chosen.run}: {error}")
    if chosen.out.exists() and get_last_checkpoint(str(chosen.out)) is None:
        parser.error(f"{chosen.out} exists already and has no checkpoint: name a new folder")
    torch.set_num_threads(chosen.threads)
    warnings.simplefilter("ignore")
    chosen.out.mkdir(parents=True, exist_ok=True)
    train(settings, chosen.steps or settings.run.steps, chosen.out, chosen.save_every)
    return 0


def refuse_others(settings: TrainSettings) -> None:
    """Refuse runs with what TRL has no setting for, or what is not passed on to it.

    Raises:
        UserError: the settings have such a value.
    """
    if settings.choice.env != "solo":
        raise UserError(f"its environment is {settings.choice.env}, and only solo is repeated")
    agent, learner, rollout = settings.agents[ROLE], settings.learner_of(ROLE), settings.rollout
    algorithm, lora = settings.algorithms.of(ROLE), model_spec(agent).lora
    gspo = replace(
        ALGORITHMS["gspo"],
        overlong_limit=algorithm.overlong_limit,
        overlong_buffer=algorithm.overlong_buffer,
        overlong_factor=algorithm.overlong_factor,
    )
    refuse(
        (algorithm != gspo, "only gspo is repeated, with or without a penalty on length"),
        (lora is None or lora.adapter is not None, "only a new LoRA adapter is repeated"),
        (
            agent.temperature is not None or agent.top_p is not None,
            "its role has a temperature or top-p of its own",
        ),
        (rollout.learner_temperature is not None, "its learner has a temperature of its own"),
        (bool(agent.system), "its role has a system message"),
        (agent.chat == "plain", "its prompts leave out the chat template"),
        (agent.dtype not in ("auto", "float32", "bfloat16"), f"it computes in {agent.dtype}"),
        (bool(settings.warmup.steps), "it has a warm-up by imitation"),
        (
            learner.schedule != "constant" or learner.warmup > 0,
            "its learning rate is not constant",
        ),
        (learner.optimizer_steps > 1, "it has several updates a step"),
        (learner.moments != "float32", f"its moments are in {learner.moments}"),
        (settings.problems.order != "shuffled", "it orders its problems by what it measured"),
        (rollout.max_prompt_tokens is not None, "it leaves out problems with long prompts"),
        (settings.run.tokens > 0, "it ends by tokens, not by steps"),
    )


def train(settings: TrainSettings, steps: int, out: Path, save_every: int) -> None:
    """Train with TRL; write ``out/steps.jsonl`` and ``out/adapter``."""
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    agent, learner, rollout = settings.agents[ROLE], settings.learner_of(ROLE), settings.rollout
    surrogate: Any = settings.algorithms.of(ROLE).surrogate
    group = answers_of_step(settings) // rollout.problems_per_step
    stream = prepare(settings.problems, settings.run.seed).train
    problems = stream.take(steps * rollout.problems_per_step)
    spec = model_spec(agent)
    folder = str(local_folder(spec) or agent.model)
    tokenizer = AutoTokenizer.from_pretrained(folder, revision=spec.revision, padding_side="left")
    prompts = [settings.env.prompt.replace("{question}", one.question) for one in problems]
    if tokenizer.chat_template:
        asked = [[{"role": "user", "content": text}] for text in prompts]
        prompts = [str(one.text) for one in render(tokenizer, asked)]
    dtype = number_format_of(replace(spec, device="cpu"), trained=True).dtype
    model = AutoModelForCausalLM.from_pretrained(folder, revision=spec.revision, dtype=dtype)
    rewards = Rewards(settings, problems)
    config = GRPOConfig(
        output_dir=str(out),
        use_cpu=True,
        bf16=dtype == torch.bfloat16,
        seed=settings.run.seed,
        shuffle_dataset=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=group,
        gradient_accumulation_steps=rollout.problems_per_step,
        num_generations=group,
        max_completion_length=settings.env.max_new_tokens,
        max_steps=steps,
        learning_rate=learner.lr,
        lr_scheduler_type="constant",
        adam_beta1=learner.betas[0],
        adam_beta2=learner.betas[1],
        weight_decay=learner.weight_decay,
        max_grad_norm=learner.max_grad_norm,
        loss_type="grpo",
        importance_sampling_level="sequence",
        epsilon=surrogate.low,
        epsilon_high=surrogate.high,
        beta=0.0,
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
        repetition_penalty=1.0,
        logging_strategy="no",
        save_steps=save_every,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=rewards,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": prompts, "index": range(len(problems))}),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=agent.lora_rank,
            lora_alpha=agent.lora_alpha,
            target_modules=resolve_targets(model, agent.lora_targets),
            task_type="CAUSAL_LM",
        ),
        callbacks=[Log(rewards, out / "steps.jsonl")],
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(out)))
    trainer.save_model(str(out / "adapter"))


if __name__ == "__main__":
    sys.exit(main())
