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
        ({"k_cold": 0}, "k_cold is 0: it must be at least 1"),
        ({"k_hinted": -1}, "k_hinted is -1"),
        ({"hint_probability": 1.5}, "between 0 and 1"),
        ({"hint_probability": NAN}, "between 0 and 1"),
        ({"w_explore": ()}, "name a weight for epoch 1"),
        ({"teacher": "worst"}, "teacher is 'worst': choose one of best, prefer-peer"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"cap": 0}, "cap is 0"),
        ({"reread": "wrong", "reread_least": -0.1}, "reread_least"),
        ({"reread": "wrong", "reread_least": 1.1}, "reread_least"),
        # Right traces are not read after themselves.
        ({"reread": "all", "reread_hint": "own"}, "with reread_hint own would give right traces"),
    ],
    CoreaDeferralSettings: [
        ({"traces": 0}, "corea-deferral: traces is 0"),
        ({"learners": ()}, "corea-deferral: learners is empty"),
        ({"confidence_reward": "l3"}, "choose one of l1, l2, kl, none"),
        ({"p_hat": "all"}, "choose one of group, leave-one-out"),
        ({"epsilon": 0.6}, "epsilon is 0.6"),
        ({"size_ratio": 0}, "size_ratio is 0"),
        ({"threshold": -0.1}, "threshold is -0.1"),
    ],
    EapoConsultationSettings: [
        ({"experts": 0}, "experts is 0: it must be at least 1"),
        ({"budget": 2, "turns_end": 3}, "between 0 and the budget"),
        ({"accept_rate": 1.5}, "accept_rate must be between 0 and 1"),
        ({"accept_rate": NAN}, "accept_rate must be between 0 and 1"),
        ({"schedule": "sometimes"}, "choose one of inv, inv-sqrt"),
        ({"consult_penalty": -1.0}, "consult_penalty is -1.0: it must be at least 0"),
        ({"accept_scale": 0.0}, "accept_scale must be above 0"),
        ({"schedule": "inv", "accept_total": 0.5}, "accept_total: inv lets in between"),
        ({"lone": -1}, "lone"),
        ({"lone": 0}, "reread does nothing without traces .* choose lone 1, or reread none"),
        ({"reread": "all"}, "reread"),
    ],
    SdE2Settings: [
        ({"traces": 0}, "sd-e2: traces is 0"),
        ({"gamma_cap": -1.0}, "gamma_cap is -1"),
        ({"same_above": 1.5}, "a cosine lies between"),
        ({"prompt_style": "rhymes"}, "choose one of plain, answer, strategies"),
    ],
    SoloSettings: [
        ({"prompt": "Solve this"}, r"write \{question\} in it"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        ({"eval_answers": 0}, "eval_answers must be at least 1"),
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
