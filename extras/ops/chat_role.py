"""The side of ``coterie chat`` that answers: a role of a run, with its prompt and its weights."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from coterie.agents.models.loading import LoadedRole
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.agents.sampling.detokenizer import Detokenizer
from coterie.agents.sampling.policy import fit_context
from coterie.agents.team.model_specs import after_training
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import (
    AnswerKind,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    UserError,
    derive_seed,
    did_you_mean,
    role_of,
)
from coterie.datatypes.thinking import opened_by
from coterie.envs.kinds import is_other
from coterie.experts.naming import is_player
from coterie.rollouts.play import question_shown, turn_sampling
from coterie.training.config.role_sampling import role_sampling
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.checkpoint_paths import complete, latest, name_of, step_in_words
from coterie.training.run.cut_off import limit_of

_MODES = ("eval", "train")
"""Modes whose first prompts are tried: some roles are asked at once in training only."""


def find_role(run: Path, settings: TrainSettings, role: str) -> str:
    """Return the role to talk to: ``role``, or the only one that the run trains.

    Args:
        run: the run's directory, for messages.
        settings: of the run.
        role: its name; empty: none is named.

    Raises:
        UserError: an unknown role, none of several, or one without a model of its own.
    """
    agents = settings.agents
    trained = [name for name, agent in agents.items() if agent.trained]
    if not role:
        if len(trained) != 1:
            raise UserError(f"{run} trained {', '.join(trained)}: name one with --role")
        return trained[0]
    if role not in agents:
        near = did_you_mean(role, agents)
        raise UserError(f"{run} has no role {role!r}; {near}known: {', '.join(agents)}")
    if is_player(model := agents[role].model):
        raise UserError(f"{role} is played by {model} in {run}; chat asks local models only")
    return role


def model_of(run: Path, agent: AgentSettings, role: str, step: int | None) -> AgentSettings:
    """Return the settings that load a role: its final weights, those of the newest checkpoint, or
    those of ``step``; of a frozen role its model.

    Raises:
        UserError: there are no such weights.
    """
    if not agent.trained:
        if step is not None:
            raise UserError(f"{role} is frozen in {run}, so no step changes it; leave out --step")
        return agent
    root = run / "checkpoints"
    folder = run / "final" / role
    if step is not None:
        folder = root / name_of(step) / role
    elif not folder.is_dir() and (newest := latest(root)):
        folder = newest / role
    if not folder.is_dir():
        kept = ", ".join(map(step_in_words, complete(root)))
        if step is not None:
            raise UserError(f"{run} has no checkpoint of step {step}; it has {kept or 'none'}")
        raise UserError(f"{run} has no weights of {role} yet; its first checkpoint brings them")
    return after_training(agent, folder)


class ChatRole:
    """A conversation with one role of a run."""

    def __init__(
        self,
        role: str,
        settings: TrainSettings,
        loaded: LoadedRole,
        *,
        kind: AnswerKind,
        seed: int,
        overrides: dict[str, Any],
    ) -> None:
        """
        Args:
            role: its name.
            settings: of the run.
            loaded: its model.
            kind: kind of answer that prompts ask for.
            seed: determines the answers, together with the number of each.
            overrides: sampling parameters that replace the run's, by name.
        """
        self._role, self._seed, self._overrides = role, seed, overrides
        self._handle, self._codec = loaded.handle, loaded.codec
        self._sampler = Sampler(loaded.handle, loaded.codec.decode, loaded.codec.eos_ids)
        self._kind: AnswerKind = kind
        usual = role_sampling(settings.rollout, settings.agents, settings.eval)[role]
        limit, _ = limit_of(settings.env, evaluated=True)
        self._usual = dataclasses.replace(usual, max_new_tokens=limit)
        self._env: Any = None
        # Environments of other kinds start programs, or show a game instead of the question.
        if not is_other(settings.choice.env):
            self._env = settings.make_env(codecs={role: loaded.codec})
        self._context: list[int] = []
        self._asked = 0

    @property
    def converses(self) -> bool:
        """Whether answers can refer to earlier ones."""
        return self._codec.converses

    def prompt(self, question: str) -> tuple[str, Sampling] | None:
        """Return the environment's prompt about ``question`` and its sampling parameters; None if
        no episode begins by asking the role about its problem."""
        if self._env is None:
            return None
        problem = Problem("chat", question, "", self._kind)
        for mode in _MODES:
            options = {"problem": problem, "mode": mode, "step": 1, "epoch": 1, "replica": 0}
            observations, infos = self._env.reset(seed=self._seed, options=options)
            for agent, observation in observations.items():
                if role_of(agent) != self._role or not observation["active"]:
                    continue
                text = str(infos[agent].get("text", ""))
                if question_shown(problem, [text]):
                    return text, turn_sampling(agent, infos[agent], self._usual, trains=False)
        return None

    def answer(self, question: str, show: Callable[[str], None]) -> list[str]:
        """Sample the answer to ``question``.

        Args:
            question: what the user says.
            show: called with each new piece of the answer's text.

        Returns:
            sentences about how it was asked, and whether it was cut off.

        Raises:
            PolicyFailure: the question alone does not fit into the model's context.
            KeyboardInterrupt: the user stopped the answer; the conversation keeps what was sampled.
        """
        notes: list[str] = []
        if (prompt := self.prompt(question)) is None:
            notes.append(f"no episode begins by asking {self._role}: it reads your text alone")
            prompt = question, self._usual
        text, usual = prompt
        usual = dataclasses.replace(usual, **self._overrides)
        tokens = self._after_history(text)
        try:
            request, sampling = self._request(tokens, text, usual)
        except PolicyFailure:
            if not self._context:
                raise
            notes.append("the context is full: the conversation begins anew")
            self._context = []
            tokens = self._after_history(text)
            request, sampling = self._request(tokens, text, usual)
        self._asked += 1
        sampled: list[int] = []
        pieces = Detokenizer(self._codec.decode)

        def tell(new_B: Any) -> None:
            sampled.extend(new_B.tolist())
            if piece := pieces.add(new_B):
                show(piece)

        if thought := opened_by(self._codec, np.asarray(tokens)):
            show(thought)
        try:
            [completion] = self._sampler.sample([request], tell)
        except FloatingPointError as error:
            raise UserError(f"{self._role} cannot answer: {error}") from None
        finally:
            self._context = [*tokens, *sampled] if self.converses else []
        if rest := pieces.rest():
            show(rest)
        if completion.finish_reason == "length":
            notes.append(f"cut off after {sampling.max_new_tokens} tokens (--max-new-tokens)")
        return notes

    def _after_history(self, text: str) -> list[int]:
        """The ids of the conversation with the new message ``text``."""
        if not self._context:
            return self._codec.open(text)
        last = self._context[-1]
        ended = last in self._codec.eos_ids
        return self._context + self._codec.follow(text, ended=ended, mark=last if ended else None)

    def _request(
        self, tokens: list[int], text: str, usual: Sampling
    ) -> tuple[SamplingRequest, Sampling]:
        seed = derive_seed(self._seed, "chat", self._asked)
        prompt = Prompt(np.asarray(tokens, dtype=np.int64), text, f"{self._role}_0", seed)
        sampling = fit_context(prompt, usual, self._handle)
        return SamplingRequest(prompt.tokens, seed, sampling, continues=True), sampling


def kind_of_run(run: Path) -> AnswerKind:
    """Return the kind of answer that the run's first episode asked for; ``math`` if unknown."""
    try:
        with (run / "episodes.jsonl").open(encoding="utf-8") as file:
            kind = json.loads(file.readline())["kind"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "math"
    return kind if kind in get_args(AnswerKind) else "math"
