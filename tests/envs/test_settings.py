"""Settings, roles and modes that make no sense are refused in one sentence, environment by
environment."""

from typing import Any

import pytest

from coterie.datatypes import UserError
from coterie.envs.core_teaching import CoreTeachingEnv, CoreTeachingSettings
from coterie.envs.corea_deferral import CoreaDeferralEnv, CoreaDeferralSettings
from coterie.envs.eapo_consultation import EapoConsultationEnv, EapoConsultationSettings
from coterie.envs.sd_e2 import SdE2Env, SdE2Settings
from coterie.envs.solo import SoloSettings

NAN = float("nan")
REFUSED: dict[type, list[tuple[dict[str, Any], str]]] = {
    CoreTeachingSettings: [
        ({"k_cold": 0}, "k_cold is 0; it must be 1 to 4096"),
        ({"k_hinted": -1}, "k_hinted is -1"),
        ({"hint_probability": 1.5}, "hint_probability is 1.5; it must be 0 to 1"),
        ({"hint_probability": NAN}, "hint_probability is nan; it must be 0 to 1"),
        ({"w_explore": ()}, r"w_explore is \(\); it must be a list with at least one entry"),
        ({"teacher": "worst"}, "teacher is 'worst'; it must be one of best, prefer-peer"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"cap": 0}, "cap is 0"),
        ({"reread": "wrong", "reread_least": -0.1}, "reread_least"),
        ({"reread": "wrong", "reread_least": 1.1}, "reread_least"),
        # Right traces are not read after themselves.
        ({"reread": "all", "reread_hint": "own"}, "with reread_hint own would give right traces"),
    ],
    CoreaDeferralSettings: [
        ({"traces": 0}, "traces is 0; it must be 1 to 4096"),
        ({"learners": ()}, r"learners is \(\); it must be a list with at least one entry"),
        ({"confidence_reward": "l3"}, "it must be one of l1, l2, kl, none"),
        ({"p_hat": "all"}, "it must be one of group, leave-one-out"),
        ({"epsilon": 0.6}, "epsilon is 0.6"),
        ({"size_ratio": 0}, "size_ratio is 0"),
        ({"threshold": -0.1}, "threshold is -0.1"),
    ],
    EapoConsultationSettings: [
        ({"experts": 0}, "experts is 0; it must be 1 to 4096"),
        ({"budget": 2, "turns_end": 3}, "between 0 and the budget"),
        ({"accept_rate": 1.5}, "accept_rate is 1.5; it must be 0 to 1"),
        ({"accept_rate": NAN}, "accept_rate is nan; it must be 0 to 1"),
        ({"schedule": "sometimes"}, "it must be one of inv, inv-sqrt"),
        ({"consult_penalty": -1.0}, "consult_penalty is -1.0; it must be at least 0"),
        ({"accept_scale": 0.0}, "accept_scale is 0.0; it must be above 0"),
        ({"schedule": "inv", "accept_total": 0.5}, "accept_total: inv lets in between"),
        ({"lone": -1}, "lone"),
        ({"lone": 0}, "reread does nothing without traces .* choose lone 1, or reread none"),
        ({"reread": "all"}, "reread"),
    ],
    SdE2Settings: [
        ({"traces": 0}, "traces is 0; it must be 1 to 4096"),
        ({"gamma_cap": -1.0}, "gamma_cap is -1"),
        ({"same_above": 1.5}, "same_above is 1.5; it must be -1 to 1"),
        ({"prompt_style": "rhymes"}, "it must be one of plain, answer, strategies"),
    ],
    SoloSettings: [
        ({"prompt": "Solve this"}, r"write \{question\} in it"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0; it must be at least 1"),
        ({"eval_answers": 0}, "eval_answers is 0; it must be at least 1"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"), [(kind, *row) for kind, rows in REFUSED.items() for row in rows]
)
def test_settings(kind: type, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        kind(**fields)


@pytest.mark.parametrize(
    ("kind", "roles", "sentence"),
    [
        *((CoreTeachingEnv, roles, "name at least two") for roles in ((), ("alice",))),
        (CoreTeachingEnv, ("alice", "alice"), "all differ"),
        (CoreTeachingEnv, ("alice", ""), "all differ"),
        (CoreaDeferralEnv, ("a", "b", "c"), "3 roles; name two"),
        (CoreaDeferralEnv, ("a", "b"), "learners names small; the roles are a, b"),
        (EapoConsultationEnv, ("policy", "helper"), "roles are policy and expert"),
        (SdE2Env, (), "at least one role"),
    ],
)
def test_roles(kind: Any, roles: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        kind(roles=roles)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (CoreTeachingEnv, {"mode": "test"}, "choose one of train, eval, probe"),
        (CoreTeachingEnv, {"problem": {"q": "?"}}, r"give a coterie\.datatypes\.Problem"),
        (CoreaDeferralEnv, {"mode": "probe"}, "mode 'probe' is unknown; choose one of train, eval"),
        (EapoConsultationEnv, {"mode": "probe"}, "mode 'probe' is unknown"),
        (EapoConsultationEnv, {"problem": "7 + 8"}, r"give a coterie\.datatypes\.Problem"),
        (SdE2Env, {"mode": "probe"}, "mode 'probe' is unknown"),
    ],
)
def test_options(kind: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        kind().reset(seed=0, options=options)
