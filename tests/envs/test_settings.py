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

REFUSED: dict[type, list[tuple[dict[str, Any], str]]] = {
    CoreTeachingSettings: [
        ({"k_cold": 0}, "k_cold is 0; it must be 1 to 4096"),
        ({"teacher": "worst"}, "teacher is 'worst'; it must be one of best, prefer-peer"),
        # Right traces are not read after themselves.
        ({"reread": "all", "reread_hint": "own"}, "with reread_hint own would give right traces"),
    ],
    CoreaDeferralSettings: [
        ({"traces": 0}, "traces is 0; it must be 1 to 4096"),
    ],
    EapoConsultationSettings: [
        ({"experts": 0}, "experts is 0; it must be 1 to 4096"),
        ({"budget": 2, "turns_end": 3}, "between 0 and the budget"),
        ({"schedule": "inv", "accept_total": 0.5}, "accept_total: inv lets in between"),
        ({"lone": 0}, "reread does nothing without traces .* choose lone 1, or reread none"),
    ],
    SdE2Settings: [
        ({"traces": 0}, "traces is 0; it must be 1 to 4096"),
    ],
    SoloSettings: [
        ({"prompt": "Solve this"}, r"write \{question\} in it"),
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
