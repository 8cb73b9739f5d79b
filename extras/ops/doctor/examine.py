"""Run all checks of the doctor, from settings to an exit code."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from coterie.agents.team.team import Team
from coterie.agents.team.trained_role import TrainedRole
from coterie.agents.team.vllm_backend import VllmBackend
from coterie.agents.vllm.fleet import Fleet
from coterie.algorithms.role_algorithms import assign_credit_by_role
from coterie.datatypes import Policy, Problem, Trajectory, UserError
from coterie.experts import ScriptedPolicy, ScriptedSettings
from coterie.experts.naming import is_player
from coterie.extras.ops.doctor.finding import Finding, judge, table
from coterie.extras.ops.doctor.grading import check_checker
from coterie.extras.ops.doctor.memory import check_memory, free_by_device
from coterie.extras.ops.doctor.observe import Examined, Observed, observe
from coterie.extras.ops.doctor.parity import check_neutrality, check_parity, tolerance
from coterie.extras.ops.doctor.players import check_expert, is_served
from coterie.extras.ops.doctor.rescore import TokenScores, rescore
from coterie.extras.ops.doctor.signal import check_answers, check_signal, check_teacher
from coterie.extras.ops.doctor.texts import check_round_trip, check_stops, check_template
from coterie.extras.ops.doctor.update import Moved, check_movement, learn, starting_weights
from coterie.extras.ops.plan import plan
from coterie.problems.prepare import PreparedProblems
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.directory import RunDirectory
from coterie.training.runtime import assemble

# An update counts if it moves log-probabilities by this many tolerances.
_CLEARLY = 3.0
_UPDATED = "parity after an update"
_SAME_WEIGHTS = (
    "sampler and learner disagree about the same weights: try --agents.*.dtype float32, "
    "--vllm.eager or --engine local; --learner.importance-correction bounds what it does"
)
_LOST_IN_SLEEP = "an engine loses weights or adapters in its sleep: leave out --vllm.sleep-level"
_OLD_WEIGHTS = (
    "the sampler did not take the new weights over: try --vllm.weights reload or --engine local"
)


def examine(settings: TrainSettings, checked: Callable[[], PreparedProblems]) -> int:
    """Print all findings. ``checked`` checks the settings and returns the problems. Returns the
    exit code: 0 no errors found, 1 errors found, 130 interrupted."""
    problems = checked()
    try:
        return _examine(settings, problems)
    except KeyboardInterrupt:
        return 130


def _examine(settings: TrainSettings, problems: PreparedProblems) -> int:
    # No file is ever written to this directory.
    nowhere = RunDirectory(Path("doctor"))
    runtime = assemble(settings, problems, nowhere, settings.plain())
    session = Examined(runtime, settings)
    with session:
        session.console.print(
            f"Examining {settings.choice.env} with {settings.choice.algo}, sampled by "
            f"{settings.run.engine}: nothing is written, and all changes are undone."
        )
        step = settings.rollout.problems_per_step
        findings = checkup(session, [problems.train.at(place) for place in range(step)])
        session.console.print(table(findings))
        wrong = sum(finding.verdict == "wrong" for finding in findings)
        session.console.print(f"{wrong} wrong." if wrong else "Nothing is wrong.")
    return 1 if wrong else 0


def checkup(session: Examined, problems: Sequence[Problem]) -> list[Finding]:
    """Run every check on a session; restores weights and optimizers afterwards."""
    settings, team = session.settings, session.team
    # Sleeping engines leave their memory to the learner.
    session.run_async(team.backend.rest())
    free = free_by_device(_devices(team))
    policies: dict[str, Policy] = dict(team.policies)
    silent: set[str] = set()
    findings = [check_checker(session.runtime.scorer, settings.scoring, problems)]
    for role, agent in settings.agents.items():
        if is_served(agent):
            limit_s = settings.rollout.call_deadline_s
            answers = session.ask(
                check_expert(role, team, session.sampling[role], deadline_s=limit_s)
            )
            findings += answers
            if any(finding.verdict == "wrong" for finding in answers):
                policies[role] = ScriptedPolicy(ScriptedSettings("silent"), team.codecs[role])
                silent.add(role)

    observed = session.ask(observe(session, problems, policies, name="before"))
    rows = observed.rows()
    readings = session.ask(team.read(rows, step=1))
    findings += _texts(session, observed)
    findings += _signals(session, observed, silent)
    findings += [
        check_teacher(role, [read for i, read in readings.items() if rows[i].role == role])
        for role in team.teachers
    ]
    scored = {role: _rescored(session, observed, role) for role in team.loaded}
    findings += [
        check_parity("parity", role, scores, _tolerance(session, role), way_out=_SAME_WEIGHTS)
        for role, scores in scored.items()
    ]
    if settings.vllm.sleep_level and _engines(team) is not None:
        # Engines have slept since, and have received no weights.
        woken = session.ask(observe(session, problems, policies, name="woken"))
        for role in team.loaded:
            scores, limit = _rescored(session, woken, role), _tolerance(session, role)
            findings.append(
                check_parity("parity after sleep", role, scores, limit, way_out=_LOST_IN_SLEEP)
            )
    findings += [
        check_neutrality(role, scores, filtered=sampling.top_p < 1 or sampling.top_k > 0)
        for role, sampling in session.sampling.items()
        if (scores := scored.get(role)) is not None
    ]
    findings += [
        session.ask(check_stops(role, team.policies[role], loaded.codec, observed.calls[role]))
        for role, loaded in team.loaded.items()
    ]
    rows = [replace(row, reading=readings.get(i)) for i, row in enumerate(rows)]
    findings += _updated(session, problems, policies, rows)
    prompt = max((int(np.argmax(row.mask)) for row in rows), default=0)
    for device in plan(settings, prompt=prompt or None).devices:
        # Devices of engines alone are left out: the engines have checked their memory.
        if device.device in free:
            findings.append(check_memory(device, free[device.device]))
    return findings


def _devices(team: Team) -> set[torch.device]:
    """The devices of the models in this process."""
    devices = {loaded.handle.device for loaded in team.loaded.values()}
    return {device for device in devices if device.type != "meta"}


def _engines(team: Team) -> Fleet | None:
    """The vLLM engines, if there are any."""
    return team.backend.fleet if isinstance(team.backend, VllmBackend) else None


def _texts(session: Examined, observed: Observed) -> list[Finding]:
    """Check chat templates and tokenizers."""
    findings = []
    for role, loaded in session.team.loaded.items():
        chat = session.settings.agents[role].chat
        findings += check_template(role, loaded.codec, loaded.tokenizer, chat=chat)
        shown = "".join(call.prompt.text for call in observed.calls[role][:1])
        findings.append(check_round_trip(role, loaded.codec, shown))
    return findings


def _signals(session: Examined, observed: Observed, silent: Collection[str]) -> list[Finding]:
    """Check answers and rewards. A role that is ``silent`` has its finding already."""
    findings = []
    for role, agent in session.settings.agents.items():
        served = is_served(agent)
        if role not in silent and (served or not is_player(agent.model)):
            findings.append(check_answers(observed, role, served=served))
        trained = role in session.team.trained
        distillation = session.settings.algorithms.of(role).distillation
        findings.append(
            check_signal(
                observed, role, session.group_key, trained=trained, distillation=distillation
            )
        )
    return findings


def _rescored(session: Examined, observed: Observed, role: str) -> TokenScores | None:
    """Score a role's rows with the learner's forward pass; None without tokens or weights."""
    handle = session.team.loaded[role].handle
    if handle.device.type == "meta":
        return None  # Only an engine holds the weights of some frozen roles.
    return rescore(
        handle,
        observed.rows(role),
        temperature=session.sampling[role].temperature,
        budget=session.settings.learner_of(role).micro_batch_tokens,
    )


def _updated(
    session: Examined,
    problems: Sequence[Problem],
    policies: Mapping[str, Policy],
    rows: Sequence[Trajectory],
) -> list[Finding]:
    """Update every learner, sample with the new weights, and restore the old ones."""
    team = session.team
    rows = [row for row in rows if row.loss_weight > 0 or row.role in team.trained]
    findings = []
    try:
        advantage_B = assign_credit_by_role(
            rows, session.group_key, session.settings.algorithms
        ).advantage_B
    except UserError as mistake:
        findings.append(Finding("groups", "all", str(mistake), "wrong", "see --group-by"))
        advantage_B = np.zeros(len(rows))
    here = {
        role: trained_role
        for role, trained_role in team.trained.items()
        if isinstance(trained_role, TrainedRole)
    }
    with starting_weights(here) as start:
        moved: dict[str, Moved | None] = {}
        for role, trained_role in here.items():
            mine = [i for i, row in enumerate(rows) if row.role == role]
            moved[role] = learn(
                trained_role,
                [rows[i] for i in mine],
                advantage_B[mine],
                start[role],
                temperature=session.sampling[role].temperature,
                least=_CLEARLY * _tolerance(session, role),
            )
        # Weights that are NaN cannot be sampled from.
        broken = any(change is not None and np.isnan(change.mean) for change in moved.values())
        after = None
        if not broken:
            after = session.ask(observe(session, problems, policies, name="after"))
        for role, change in moved.items():
            findings += _after_update(session, after, role, change)
    return findings


def _after_update(
    session: Examined, observed: Observed | None, role: str, moved: Moved | None
) -> list[Finding]:
    if moved is None:
        return [Finding(_UPDATED, role, "no rows to learn from", "not measured")]
    findings = [check_movement(role, moved.movement)]
    limit = _tolerance(session, role)
    said = f"{moved.updates} update{'s' * (moved.updates > 1)} up to lr {moved.lr:.1e}"
    if not moved.mean >= _CLEARLY * limit:
        measured = f"{said} moved log-probabilities by {moved.mean:.1e} only"
        verdict = "wrong" if np.isnan(moved.mean) else "not measured"
        way_out = f"choose another --agents.{role}.learner.lr"
        return [*findings, Finding(_UPDATED, role, measured, verdict, way_out)]
    if observed is None:
        why = "another role cannot answer"
        return [*findings, Finding(_UPDATED, role, why, "not measured")]
    scores = _rescored(session, observed, role)
    version = session.team.loaded[role].handle.version
    old = [row for row in observed.rows(role) if row.trainable and row.weight_version != version]
    return [
        *findings,
        check_parity(_UPDATED, role, scores, limit, way_out=_OLD_WEIGHTS),
        judge(
            "weight version",
            role,
            f"{said}; {len(old)} rows name other weights than the newest",
            wrong=bool(old),
            way_out=_OLD_WEIGHTS,
        ),
    ]


def _tolerance(session: Examined, role: str) -> float:
    """The tolerance of the coarser number format, of learner and sampler."""
    fleet = _engines(session.team)
    handle = session.team.loaded[role].handle
    own = tolerance(handle.dtype, int8=handle.in_8_bits)
    return own if fleet is None else max(own, tolerance(fleet.dtype_of(role)))
