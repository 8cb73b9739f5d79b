"""Run all checks of the doctor, from settings to an exit code."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.team import Team
from coterie.agents.team.trained_role import TrainedRole
from coterie.agents.team.vllm_backend import VllmBackend
from coterie.agents.vllm.fleet import Fleet
from coterie.algorithms import assign_credit
from coterie.datatypes import Policy, Problem, Sampling, UserError
from coterie.experts import ScriptedPolicy, ScriptedSettings
from coterie.experts.naming import is_player
from coterie.extras.ops.doctor import memory
from coterie.extras.ops.doctor.contract import check_answers, check_contract
from coterie.extras.ops.doctor.finding import Finding, judge, table
from coterie.extras.ops.doctor.grading import check_checker
from coterie.extras.ops.doctor.observe import Examined, Observed, few, observe
from coterie.extras.ops.doctor.parity import check_neutrality, check_parity, tolerance
from coterie.extras.ops.doctor.players import asked_experts, check_calls, check_expert
from coterie.extras.ops.doctor.rescore import TokenScores, rescore
from coterie.extras.ops.doctor.signal import check_signal, check_spaces, check_variety
from coterie.extras.ops.doctor.texts import (
    check_boundaries,
    check_round_trip,
    check_stops,
    check_template,
)
from coterie.extras.ops.doctor.update import Moved, check_movement, learn, starting_weights
from coterie.extras.ops.footprint import Load, footprint
from coterie.problems.prepare import PreparedProblems
from coterie.training.config.role_sampling import role_sampling
from coterie.training.config.run_settings import MAX_NEW_TOKENS
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.directory import RunDirectory
from coterie.training.runtime import assemble

# An update counts if it moves log-probabilities by this many tolerances.
_CLEARLY = 3.0
_PARITY, _WOKEN, _UPDATED = "parity", "parity after sleep", "parity after an update"
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
    """Run every check on a session; restores weights and optimisers afterwards."""
    settings, team = session.settings, session.team
    rollout = settings.rollout
    # The memory that sleeping engines free is available to the learner.
    session.run_async(team.backend.rest())
    free = memory.free_by_device(team)
    sampling = role_sampling(rollout, settings.agents)
    policies: dict[str, Policy] = dict(team.policies)
    findings = [check_checker(settings.scoring, problems)]

    experts = asked_experts(settings.agents)
    for role in experts:
        answers = session.ask(
            check_expert(role, team, sampling[role], deadline_s=rollout.call_deadline_s)
        )
        findings += answers
        if any(finding.verdict == "wrong" for finding in answers):
            policies[role] = ScriptedPolicy(ScriptedSettings("silent"), team.codecs[role])

    observed = session.ask(observe(session, problems, policies, name="before"))
    findings += [check_calls(role, team) for role in experts]
    findings += _texts(session, observed)
    findings += _trajectories(session, observed)
    scored = _scored(session, observed)
    findings += _parity(session, scored, _PARITY, _SAME_WEIGHTS)
    if settings.vllm.sleep_level and _engines(team) is not None:
        # Engines have slept since, and have received no weights.
        woken = session.ask(observe(session, problems, policies, name="woken"))
        findings += _parity(session, _scored(session, woken), _WOKEN, _LOST_IN_SLEEP)
    findings += [
        check_neutrality(role, scored_rows, filtered=filters(sampling[role]))
        for role, scored_rows in scored.items()
        if scored_rows
    ]
    findings += [
        session.ask(check_stops(role, team.policies[role], loaded.codec, observed.asked[role]))
        for role, loaded in team.loaded.items()
    ]
    took: dict[str, int | None] = {}
    findings += _updated(session, problems, policies, observed, took)
    findings += _memory(session, problems, observed, free, took)
    return findings


def filters(sampling: Sampling) -> bool:
    """Whether some tokens are never sampled."""
    return sampling.top_p < 1 or sampling.top_k > 0


def _engines(team: Team) -> Fleet | None:
    """The vLLM engines, if there are any."""
    return team.backend.fleet if isinstance(team.backend, VllmBackend) else None


def _texts(session: Examined, observed: Observed) -> list[Finding]:
    """Check chat templates and tokenizers."""
    findings = []
    for role, loaded in session.team.loaded.items():
        chat = session.settings.agents[role].chat
        findings.append(check_template(role, loaded.codec, loaded.tokenizer, chat=chat))
        findings += check_boundaries(role, loaded.codec, loaded.tokenizer, chat=chat)
        shown = "".join(asked.prompt.text for asked in observed.asked[role][:1])
        findings.append(check_round_trip(role, loaded.codec, shown))
    return findings


def _trajectories(session: Examined, observed: Observed) -> list[Finding]:
    findings = []
    sampling = role_sampling(session.settings.rollout, session.settings.agents)
    for role, agent in session.settings.agents.items():
        played, filtered = is_player(agent.model), filters(sampling[role])
        if not played:
            findings.append(check_answers(observed, role))
        findings.append(check_contract(observed, role, blind=played or filtered))
        trained = role in session.team.trained
        findings += check_signal(observed, role, session.group_key, trained=trained)
    findings += [check_variety(observed), check_spaces(observed)]
    return findings


def _scored(session: Examined, observed: Observed) -> dict[str, TokenScores | None]:
    """Score each model's rows with the learner's forward pass; None where that is impossible."""
    scored = {}
    for role, loaded in session.team.loaded.items():
        # Only an engine holds the weights of some frozen roles.
        here = loaded.handle.device.type != "meta"
        scored[role] = _rescored(session, observed, role) if here else None
    return scored


def _rescored(session: Examined, observed: Observed, role: str) -> TokenScores | None:
    return rescore(
        session.team.loaded[role].handle,
        observed.rows(role),
        temperature=sampled_at(session, role),
        budget=session.settings.learner.micro_batch_tokens,
    )


def sampled_at(session: Examined, role: str) -> float:
    """The temperature that a role's answers are sampled at."""
    settings = session.settings
    return role_sampling(settings.rollout, settings.agents)[role].temperature


def _parity(
    session: Examined, scored: Mapping[str, TokenScores | None], check: str, way_out: str
) -> list[Finding]:
    findings = []
    for role, scored_rows in scored.items():
        if scored_rows is None:
            why = "nothing to compare: no tokens, or weights that only an engine holds"
            findings.append(Finding(check, role, why, "not measured"))
            continue
        findings.append(
            check_parity(check, role, scored_rows, _tolerance(session, role), way_out=way_out)
        )
    return findings


def _updated(
    session: Examined,
    problems: Sequence[Problem],
    policies: Mapping[str, Policy],
    observed: Observed,
    took: dict[str, int | None],
) -> list[Finding]:
    """Update every learner, sample with the new weights, and restore the old ones. Fills ``took``
    with the bytes that each update took."""
    team = session.team
    rows = [row for row in observed.rows() if row.loss_weight > 0 or row.role in team.trained]
    findings = []
    try:
        advantage_B = assign_credit(rows, session.group_key, session.settings.algo).advantage_B
    except UserError as mistake:
        findings.append(Finding("groups", "all", str(mistake), "wrong", "see --group-by"))
        advantage_B = np.zeros(len(rows))
    here = {
        role: trained_role
        for role, trained_role in team.trained.items()
        if isinstance(trained_role, TrainedRole)
    }
    with starting_weights(here) as start:
        moved = {}
        for role, trained_role in here.items():
            mine = [i for i, row in enumerate(rows) if row.role == role]
            moved[role] = learn(
                trained_role,
                [rows[i] for i in mine],
                advantage_B[mine],
                start[role],
                temperature=sampled_at(session, role),
                least=_CLEARLY * _tolerance(session, role),
            )
        broken = any(change is not None and np.isnan(change.mean) for change in moved.values())
        # Weights that are NaN cannot be sampled from.
        sampled = None if broken else observe(session, problems, policies, name="after")
        after = session.ask(sampled) if sampled else None
        for role, change in moved.items():
            took[role] = change.took if change else None
            findings += _after(session, after, role, change)
    return findings


def _after(
    session: Examined, observed: Observed | None, role: str, moved: Moved | None
) -> list[Finding]:
    if moved is None:
        return [Finding(_UPDATED, role, "no rows to learn from", "not measured")]
    movement = check_movement(role, moved.movement)
    limit = _tolerance(session, role)
    said = f"{moved.updates} update{'s' * (moved.updates > 1)} up to lr {moved.lr:.1e}"
    if not moved.mean >= _CLEARLY * limit:
        return [
            movement,
            Finding(
                _UPDATED,
                role,
                f"{said} moved log-probabilities by {moved.mean:.1e} only",
                "wrong" if np.isnan(moved.mean) else "not measured",
                "choose another --learner.lr",
            ),
        ]
    if observed is None:
        return [movement, Finding(_UPDATED, role, "another role cannot answer", "not measured")]
    scored = _rescored(session, observed, role)
    version = session.team.loaded[role].handle.version
    old = [row for row in observed.rows(role) if row.trainable and row.weight_version != version]
    findings = [movement, *_parity(session, {role: scored}, _UPDATED, _OLD_WEIGHTS)]
    findings.append(
        judge(
            "weight version",
            role,
            f"{said}; {len(old)} rows name other weights than the newest",
            wrong=bool(old),
            way_out=_OLD_WEIGHTS,
        )
    )
    return findings


def _memory(
    session: Examined,
    problems: Sequence[Problem],
    observed: Observed,
    free: Mapping[str, int | None],
    took: Mapping[str, int | None],
) -> list[Finding]:
    settings, team = session.settings, session.team
    taken, replicas = few(session, problems)
    scale = settings.rollout.problems_per_step * session.replicas / (len(taken) * replicas)
    rows = {
        role: (
            round(scale * len(observed.rows(role))),
            max((len(row.tokens) for row in observed.rows(role)), default=0),
        )
        for role in team.loaded
    }
    updates = {
        role: _update_bytes(session, observed, role, took.get(role)) for role in team.trained
    }
    needed = memory.needs(team, updates=updates, rows=rows)
    if (fleet := _engines(team)) is not None:
        devices = [spec.device for spec in fleet.specs]
        if size := memory.engine_needs(devices, settings.vllm.cpu_cache_gb):
            needed.setdefault("cpu", {})["engines' caches"] = size
    # Devices with only engines of frozen roles are left out: the engines checked their memory.
    return [memory.check_memory(place, needed[place], free.get(place)) for place in sorted(needed)]


def _update_bytes(session: Examined, observed: Observed, role: str, took: int | None) -> int:
    """Bytes that a micro-batch of the longest rows takes: the plan, corrected by the measured
    update on the observed rows."""
    settings, handle = session.settings, session.team.loaded[role].handle
    agent, mine = settings.agents[role], observed.rows(role)
    if not mine:
        return 0
    prompt = max(int(np.argmax(row.mask)) for row in mine)
    longest = max(len(row.tokens) for row in mine)
    entropy = settings.algo.entropy_coefficient != 0
    answer = max(int(np.count_nonzero(row.mask)) for row in mine)
    tokens = settings.learner.micro_batch_tokens
    seen = Load(tokens, longest, answer, entropy, most=len(mine))
    limit = getattr(settings.env, "max_new_tokens", MAX_NEW_TOKENS)
    most = min(handle.context, prompt + getattr(settings.env, "read_tokens", 0) + limit)
    load = Load(tokens, max(most, longest), min(limit, most - 1), entropy)
    spec, config = model_spec(agent), handle.causal_lm.config
    planned, probe = (footprint(config, spec, batch, handle.dtype) for batch in (load, seen))
    return memory.corrected(planned.update, probe, took)


def _tolerance(session: Examined, role: str) -> float:
    """The tolerance of the coarser number format, of learner and sampler."""
    fleet = _engines(session.team)
    own = session.team.loaded[role].handle.dtype
    return max(tolerance(own), tolerance(own if fleet is None else fleet.dtype_of(role)))
