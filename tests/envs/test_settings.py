"""Settings, roles and modes that make no sense are refused in one sentence, environment by
environment."""

from typing import Any

import pytest

from coterie.datatypes import UserError
from coterie.envs.core_teaching import CoreTeachingEnv, CoreTeachingSettings
from coterie.envs.corea_deferral import CoreaDeferralEnv
from coterie.envs.eapo_consultation import EapoConsultationEnv, EapoConsultationSettings
from coterie.envs.sd_e2 import SdE2Env
from coterie.envs.solo import SoloSettings

REFUSED: dict[type, list[tuple[dict[str, Any], str]]] = {
    CoreTeachingSettings: [
        ({"k_cold": 0}, "k_cold is 0; it must be 1 to 4096"),
        # Right traces are not read after themselves.
        ({"reread": "all", "reread_hint": "own"}, "choose reread wrong, not all"),
    ],
    EapoConsultationSettings: [
        ({"budget": 2, "turns_end": 3}, "between 0 and the budget"),
        ({"schedule": "inv", "accept_total": 0.5}, "accept_total: inv can sum to 1 to"),
        ({"lone": 0}, "reread needs lone traces, and lone is 0; choose lone 1, or reread none"),
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


@pytest.mark.parametrize("kind", [CoreTeachingEnv, CoreaDeferralEnv, EapoConsultationEnv, SdE2Env])
def test_options(kind: Any) -> None:
    modes = ", ".join(kind.modes)
    with pytest.raises(UserError, match=f"mode 'test' is unknown; choose one of {modes}"):
        kind().reset(seed=0, options={"mode": "test"})
    with pytest.raises(UserError, match=r"give a coterie\.datatypes\.Problem"):
        kind().reset(seed=0, options={"problem": "7 + 8"})


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (CoreTeachingEnv, {"step": "x"}, r"options\['step'\] is 'x'; give a whole number"),
        (CoreTeachingEnv, {"epoch": float("inf")}, "is inf; give a whole number"),
        (CoreTeachingEnv, {"mode": "probe", "hint_probability": None}, "is None; give a number"),
        (EapoConsultationEnv, {"step": [1]}, r"options\['step'\] is \[1\]; give a whole number"),
        (EapoConsultationEnv, {"replica": "x"}, r"options\['replica'\] is 'x'"),
    ],
)
def test_options_that_are_no_numbers(kind: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        kind().reset(seed=0, options=options)
