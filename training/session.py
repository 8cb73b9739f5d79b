"""One run: its team, its environment, its problems and its directory, held together."""

import asyncio
import time
from collections import ChainMap
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

import torch
from rich.console import Console

from coterie import envs
from coterie.algorithms import Credit, assign_credit
from coterie.algorithms.imitation import Imitation
from coterie.algorithms.nonfinite import NotFinite
from coterie.cluster.episode_worker import EnvRecipe
from coterie.cluster.episodes import EpisodeWorkers
from coterie.cluster.pool import pool_for
from coterie.datatypes import Sampling, UserError
from coterie.evaluation import evaluation_of
from coterie.evaluation.evaluation import Outcomes
from coterie.evaluation.table import comparison
from coterie.models.threads import fix_threads
from coterie.problems.prepare import PreparedProblems
from coterie.rollouts import Collector, Deadlines
from coterie.teams.graders import build_scorer
from coterie.teams.models import pin_commits
from coterie.teams.players import player_counters
from coterie.teams.team import Learning, Learns, build_team
from coterie.training import checkpoint, saved
from coterie.training.baseline import baseline
from coterie.training.batch import (
    Batch,
    advantages_by_row,
    rows_of,
    with_divergences,
    without_stale,
)
from coterie.training.computing import tell_computing
from coterie.training.deaths import said_at_work, said_while_starting
from coterie.training.examiner import Examiner
from coterie.training.logbook import Logbook
from coterie.training.model_defaults import fitting
from coterie.training.origins import check_unchanged, write_environment
from coterie.training.prompt_limit import drop_long_prompts
from coterie.training.records import (
    episode_record,
    not_finite,
    reward_metrics,
    rollout_metrics,
    transcript,
    troubles,
    why_no_signal,
)
from coterie.training.rundir import LOGS, RunDirectory, default_path
from coterie.training.sampling import StepSampler
from coterie.training.settings import MAX_NEW_TOKENS
from coterie.training.stage import loading, stage, stage_of_step
from coterie.training.summary import Tally, places_table, summary
from coterie.training.symptoms import Observer
from coterie.training.trackers import Trackers, episode_rows
from coterie.training.train_settings import TrainSettings
from coterie.training.warmup_stage import WarmUp

T = TypeVar("T")

# Steps after which a role without any signal is told of.
_SETTLED = 3
# How often an environment from elsewhere is played from one seed.
_REPLICAS = 8


class Session(AbstractContextManager["Session"]):
    """What the training loop works with: its methods are the loop's verbs."""

    def __init__(
        self, settings: TrainSettings, problems: PreparedProblems, run: RunDirectory
    ) -> None:
        self.settings, self.run = settings, run
        self.console = Console()
        with ExitStack() as closing:
            closing.callback(run.close)
            self._runner = closing.enter_context(asyncio.Runner())
            self._build(problems, closing)
            self._closing = closing.pop_all()

    def _build(self, problems: PreparedProblems, closing: ExitStack) -> None:
        """Load, start and restore everything; what fails on the way closes what is open."""
        settings, run = self.settings, self.run
        self._timings: dict[str, float] = {}
        self._warned: set[str] = set()
        """Roles that the user has been told of."""
        self._slow = bool(fitting(settings, settings.agents))
        """Whether stages take so long that they are shown through a pipe, too."""
        cluster, threads = settings.cluster, settings.run.threads
        fix_threads(threads)
        torch.manual_seed(settings.run.seed)

        self._stream, rollout, warmup = problems.train, settings.rollout, settings.warmup
        vllm = settings.vllm if settings.run.engine == "vllm" else None
        workers = self._workers = EpisodeWorkers(cluster, settings.agents, vllm=vllm is not None)
        models = [agent.model for agent in settings.agents.values()]
        with loading(self.console, models, told=self._slow):
            self.team = build_team(
                settings.agents,
                learning=Learning(
                    settings.algo,
                    settings.learner,
                    temperature=rollout.learner_temperature or rollout.temperature,
                    total_steps=settings.run.steps,
                    imitation=Imitation(warmup.steps, warmup.lr) if warmup.steps else None,
                ),
                vllm=vllm,
                seed=settings.run.seed,
                holder=pool_for(cluster, settings.agents, threads, vllm, run.path, workers.actors),
            )
        closing.callback(lambda: self.run_async(self.team.aclose()))
        self.run_async(self.team.start())
        tell_computing(self.team, settings.agents, self._tell)
        closing.callback(workers.close)
        made_of = (settings.choice.roles, self.team.codecs, self._stream.source, settings.scoring)
        recipe = EnvRecipe(settings.choice.env, settings.env, *made_of)
        workers.open(recipe, threads)
        if places := self._places:
            self.console.print(places_table(places))
        self._scorer, self._graders = build_scorer(settings.scoring)
        self.make_env = partial(recipe.make, self._scorer)
        closing.callback(self._graders.close)
        closing.callback(self._scorer.close)
        env = self.make_env()
        metadata, self._agents = env.metadata, len(env.possible_agents)
        self.group_key = settings.run.group_by or metadata.get("default_group", "problem+role")
        # An environment from elsewhere knows no groups: it is compared with replicas of itself.
        alone = 1 if settings.env is not None else _REPLICAS
        self.replicas = rollout.replicas or int(metadata.get("replicas", alone))
        limit = rollout.max_prompt_tokens
        self._dropped = drop_long_prompts(self._stream, self.make_env, limit, self._tell)
        self.sampler = StepSampler(
            self.team,
            self._collecting(rollout.temperature, rollout.top_p),
            self._stream,
            settings.algo,
            group_key=self.group_key,
            problems=rollout.problems_per_step,
            replicas=self.replicas,
            seed=settings.run.seed,
        )
        closing.callback(lambda: self.run_async(self.sampler.aclose()))
        self._warmup = WarmUp(self.team, problems.worked, self.make_env, warmup)
        how = settings.eval
        self._examiner = Examiner(
            evaluation_of(envs.spec(settings.choice.env)),
            self._collecting(
                rollout.temperature if how.temperature is None else how.temperature,
                rollout.top_p if how.top_p is None else how.top_p,
            ),
            problems.evaluation if how.enabled else (),
            roles=settings.choice.roles,
            env_settings=settings.env,
            settings=how,
            seed=settings.run.seed,
            run=run,
        )
        learners = self.team.trained
        self._observer = Observer(settings, learners, self.group_key, self._tell)
        self._progress = checkpoint.Progress(0, 0, run.log_sizes(), {})
        if settings.choice.resume:
            self._restore()
        self._cursor = self._progress.cursor
        self._tally = Tally(self._progress.counters)
        self._unmoved = set() if self._progress.step else set(self.team.trained)
        """Trained roles that have had nothing to learn from, so far."""

    def warm_up(self, check: Callable[[], None]) -> Outcomes | None:
        """Have roles imitate worked solutions before they are rewarded (``--warmup.steps``), and
        evaluate; None without. Behind each step there is a ``check`` whether to stop."""
        if not (last := self.settings.warmup.steps):
            return None
        if self._progress.warmed < last:
            self.ask(asyncio.sleep(0))  # what answers leaves the devices to the learner
            first = self._progress.warmed + 1
            for step in self._warmup.steps(first, self.run, self.console, check):
                self._progress = replace(self._progress, warmed=step)
                if step == last or _due(step, self.settings.run.checkpoint_every):
                    self.save()
        return self.evaluate("warmed-up")

    def open_logbook(self) -> Logbook:
        """Where the numbers of each step go, with the progress bar."""
        measured = self._examiner.evaluation.headline(self.settings.choice.roles)
        return Logbook(
            self.run,
            self.console,
            first=self._progress.step + 1,
            last=self.settings.run.steps,
            headline=[*(f"reward/{role}" for role in self.team.trained), *measured],
            trackers=Trackers(self.settings.run.track, self.run, self._tell),
        )

    def steps_left(self) -> Iterator[int]:
        """The steps still to be done, counted from 1."""
        for step in range(self._progress.step + 1, self.settings.run.steps + 1):
            if self._sampled_enough:
                break
            yield step

    def sample(self, step: int) -> Batch:
        """One step's episodes: played with the newest weights, or those that were played ahead."""
        answers = self.settings.rollout.problems_per_step * self.replicas * self._agents
        shown = stage_of_step(self.console, f"step {step}: sampling", answers, told=self._slow)
        with self._time("sample"), shown:
            batch, self._cursor = self.run_async(self.sampler.batch(step))
        versions = {role: one.version for role, one in self.team.trained.items()}
        return without_stale(batch, versions, self.settings.rollout.max_staleness)

    def credit(self, batch: Batch) -> Credit:
        """Compare the traces of each group with each other."""
        rows, stats = with_divergences(batch.rows, self.team.trained, self.settings.algo)
        credit = assign_credit(rows, self.group_key, self.settings.algo)
        return replace(credit, stats={**credit.stats, **stats})

    def sample_ahead(self, step: int) -> None:
        """With ``--rollout.overlap``: begin to play ``step`` with the weights of this moment, and
        go on while the roles learn. Nothing to do without, or behind the last step."""
        if self.settings.rollout.overlap and not self._is_last(step - 1):
            self.run_async(self.sampler.begin(step))

    def update(self, batch: Batch, credit: Credit) -> dict[str, float]:
        """Let every trained role learn from its own rows; metrics by ``learner/ROLE/NAME``."""
        step = self._progress.step + 1

        def learned(role: str, trained: Learns) -> dict[str, float]:
            try:
                return trained.update(*rows_of(batch, credit, role))
            except NotFinite as why:
                raise not_finite(self.run, role, step, why) from None

        def learn() -> dict[str, float]:
            return {
                f"learner/{role}/{name}": value
                for role, metrics in self.team.side_by_side(learned).items()
                for name, value in metrics.items()
            }

        with self._time("update"):
            # What is being played ahead needs the event loop meanwhile.
            return self.run_async(asyncio.to_thread(learn)) if self.sampler.is_ahead else learn()

    def record(
        self,
        step: int,
        batch: Batch,
        credit: Credit,
        learner_metrics: Mapping[str, float],
        logbook: Logbook,
    ) -> None:
        """Log the step everywhere; from here on it counts as done."""
        rows = [row for episode in batch.episodes for row in episode.trajectories]
        tokens = self._tally.add(rows, self.team.trained)
        with self._time("record"):
            metrics = {
                **reward_metrics(rows),
                **{f"credit/{name}": value for name, value in credit.stats.items()},
                **learner_metrics,
                **rollout_metrics(batch, tokens, self._tally),
                **player_counters(self.team.policies),
                **{f"time/{name}_s": seconds for name, seconds in self._timings.items()},
            }
            logbook.step(step, metrics)
            worth = advantages_by_row(batch.rows, credit)
            if self.settings.run.episodes_log:
                added = ChainMap(*(one.told for one in self.team.trained.values()))
                self.run.append(
                    "episodes.jsonl", [episode_record(e, worth, added) for e in batch.episodes]
                )
            if _due(step, self.settings.run.transcripts_every):
                logbook.text(step, "transcript", transcript(batch.episodes[0]))
                logbook.episodes(step, episode_rows(batch.episodes, worth))
        told = troubles(
            rows,
            learner_metrics,
            trained=self.team.trained,
            frozen=self.team.policies.keys() - self.team.trained.keys(),
        )
        self._unmoved -= {row.role for row, one in zip(batch.rows, credit.advantage_B) if one}
        self._unmoved -= {r for r in self._unmoved if learner_metrics.get(f"learner/{r}/grad_norm")}
        told |= why_no_signal(rows, self._unmoved if step == _SETTLED else ())
        for role in sorted(told.keys() - self._warned):
            self._tell(f"step {step}: {role} {told[role]}")
        self._warned |= told.keys()
        self._observer.look_at(batch.episodes, f"step {step}: ")
        self._progress = replace(self._progress, step=step, cursor=self._cursor)

    def evaluate_between(self, step: int, logbook: Logbook) -> None:
        """Evaluate on the held-out problems and log it, if it is time to (``--eval.every``)."""
        if _due(step, self.settings.eval.every) and not self._is_last(step):
            found = self._examiner.estimate(self.ask(self._examiner.examine()), resamples=1)
            logbook.evaluation(step, {f"eval/{name}": m.value for name, m in found.items()})

    def checkpoint(self, step: int) -> None:
        """Save, if it is time to."""
        if _due(step, self.settings.run.checkpoint_every) or self._is_last(step):
            self.save()

    def save(self) -> None:
        """Write a checkpoint of the last whole step."""
        self._progress = replace(
            self._progress, logs=self.run.log_sizes(), counters=self._tally.counters()
        )
        root, keep = self.run.checkpoints, self.settings.run.keep_checkpoints
        with self._time("checkpoint"):
            path = checkpoint.save(root, self._progress, self.team.trained, keep=keep)
        self.team.saved(partial(checkpoint.load_roles, path))

    def evaluate(self, name: str) -> Outcomes | None:
        """Outcomes on the held-out problems, stored under ``name``; None if there are none."""
        if name == "before":
            self._observer.look_at_settings()
        answers, title = self._examiner.expected(name), f"evaluating {name} training"
        with stage(self.console, title, answers, told=self._slow):
            outcomes = self.ask(self._examiner.evaluate(name))
        if failures := self._examiner.failures():
            self._tell(failures)
        self._observer.look_at(self._examiner.episodes)
        return outcomes

    def conclude(
        self,
        before: Outcomes | None,
        after: Outcomes | None,
        warmed_up: Outcomes | None = None,
    ) -> None:
        """Keep the trained models, write the summary and show the table: before, behind the
        warm-up if there was one, and after."""
        for role, trained in self.team.trained.items():
            self.run.write_model(role, trained.export)
        estimate = self._examiner.estimate
        first, between, last = estimate(before), estimate(warmed_up), estimate(after)
        tally, wall_s, steps = self._tally, self._tally.wall_s(), self._progress.step
        alone = baseline(self.settings)
        told = {"steps": steps, "dropped_prompts": self._dropped, "config": self.settings.plain()}
        told |= {"alone": asdict(alone)} if alone.metrics else {}
        told |= {"places": places} if (places := self._places) else {}
        result = summary(first, last, wall_s, tally.tokens, between) | told
        self.run.write_json("summary.json", result)
        if last:
            rows = self._examiner.evaluation.table(self.settings.choice.roles, first, last)
            self.console.print(comparison(first, last, rows, alone.metrics, between))
            if alone.metrics:
                self._tell(alone.sentence)
        self._tell(
            f"{steps} step{'s' * (steps != 1)}, {tally.tokens:,} sampled tokens, {wall_s:.0f} s; "
            f"all of it is in {self.run.path}"
        )

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work``, which asks policies, with the newest weights."""

        async def answered() -> T:
            await self.sampler.settle()
            async with self.team.answering():
                return await work

        return self.run_async(answered())

    def __exit__(self, *raised: Any) -> None:
        self._closing.close()
        said_at_work(*raised[1:2], run=self.run)

    @property
    def _places(self) -> list[dict[str, str]]:
        return self.team.places + self._workers.places

    @property
    def _sampled_enough(self) -> bool:
        return 0 < self.settings.run.tokens <= self._tally.learner_tokens

    def _is_last(self, step: int) -> bool:
        return step == self.settings.run.steps or self._sampled_enough

    def _collecting(self, temperature: float, top_p: float) -> Collector:
        rollout = self.settings.rollout
        return self._workers.collector(
            self.make_env,
            self.team.policies,
            sampling=Sampling(MAX_NEW_TOKENS, temperature, top_p, rollout.top_k),
            scorer=self._scorer,
            deadlines=Deadlines(rollout.call_deadline_s, rollout.episode_deadline_s),
            concurrency=rollout.concurrency,
        )

    def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` to its end on the session's own event loop."""
        # Not Runner.run: it handles SIGINT itself, and in doing so prints a task's whole result.
        return self._runner.get_loop().run_until_complete(work)

    def _restore(self) -> None:
        newest = saved.latest(self.run.checkpoints)
        if newest is None:
            self._tell("It was stopped before its first checkpoint, and begins again.")
            self._progress = checkpoint.Progress(0, 0, dict.fromkeys(LOGS, 0), {})
        else:
            self._progress = checkpoint.load(newest, self.team.trained)
            self.team.saved(partial(checkpoint.load_roles, newest))
        self.run.cut_logs(self._progress.logs)
        self._stream.cursor = self._progress.cursor

    def _tell(self, sentence: str) -> None:
        """Show a sentence as it is: what models and users wrote is no markup."""
        self.console.print(sentence, markup=False, soft_wrap=True)

    @contextmanager
    def _time(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._timings[phase] = time.perf_counter() - start


@said_while_starting()
def open_session(settings: TrainSettings, problems: PreparedProblems) -> Session:
    """Start a new run, or take one up where its last checkpoint stands."""
    choice = settings.choice
    if choice.resume:
        run = RunDirectory.reopen(choice.resume)
        run.own()
        check_unchanged(run, settings.agents, problems.fingerprints)
        if (newest := saved.latest(run.checkpoints)) is not None:
            checkpoint.check(newest, print)
        session = Session(settings, problems, run)
    else:
        settings = replace(settings, agents=pin_commits(settings.agents))
        path = settings.run.run_dir or default_path(choice.env, choice.algo)
        run = RunDirectory.create(path, settings.plain())
        try:
            session = Session(settings, problems, run)
        except UserError:
            run.discard()
            raise
    write_environment(run, settings.agents, problems.fingerprints)
    return session


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
