"""Multi-agent environments, by name.

``make(name)`` builds one, ``check_env(env)`` says whether an environment keeps the contract, and
importing this package makes every environment known to ``pettingzoo.make`` as well. An environment
of your own is a :class:`ConversationEnv`.
"""

from pathlib import Path

from coterie.envs.adapt import adapt
from coterie.envs.check import check_env
from coterie.envs.conversation import ConversationEnv
from coterie.envs.core_teaching.check import check as core_teaching_check
from coterie.envs.core_teaching.settings import CoreTeachingSettings
from coterie.envs.corea_deferral.settings import CoreaDeferralSettings
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.envs.registry import EnvSpec, make, names, reads_nothing_again, register, spec
from coterie.envs.sd_e2.settings import SdE2Settings
from coterie.envs.solo import SoloSettings
from coterie.envs.turns import Answers, Ask, Conversation, Fresh, Outcome, Turn

__all__ = [
    "Answers",
    "Ask",
    "Conversation",
    "ConversationEnv",
    "EnvSpec",
    "Fresh",
    "Outcome",
    "Turn",
    "adapt",
    "check_env",
    "make",
    "names",
    "register",
    "spec",
]

register(
    EnvSpec(
        name="core-teaching",
        version=0,
        shipped=True,
        factory="coterie.envs.core_teaching:CoreTeachingEnv",
        settings=CoreTeachingSettings,
        roles=("alice", "bob"),
        evaluation="coterie.evaluation.core_teaching:EVALUATION",
        rereads=lambda settings: settings.reread != "none",
        check=core_teaching_check,
        # Peer distillation, the arm "expected" of docs/evidence.md, which beats training alone:
        # only being right is paid, and traces of a role that has no right one are read again behind
        # a peer's.
        defaults={
            # Half of the problems are one role's, and the other half practically never.
            "problems": {"train": "chains?mix=0.5,0.5,0&min_length=5&max_length=5"},
            "env": {
                "k_cold": 3,
                "k_hinted": 0,
                "teacher": "prefer-peer",
                "alpha": 0.0,
                "w_explore": (0.0,),
                "lambda_cm": (0.0,),
                "lambda_ta": 0.0,
                "r_teach": 0.0,
                "reread": "unsolved",
                # A peer that is right by luck has nothing to teach.
                "reread_least": 0.5,
            },
            "algo": {"distillation": {"beta": 1.0, "likeliest": 64, "fade": 1.0}},
            "run": {"group_by": "problem+role"},
        },
        baseline=Path(__file__).parent / "core_teaching/alone.json",
    )
)
register(
    EnvSpec(
        name="corea-deferral",
        version=0,
        shipped=True,
        factory="coterie.envs.corea_deferral:CoreaDeferralEnv",
        settings=CoreaDeferralSettings,
        roles=("small", "large"),
        evaluation="coterie.evaluation.corea_deferral:EVALUATION",
        rereads=reads_nothing_again,
        learns=lambda settings: settings.learners,
        learning=lambda roles: {"learners": roles},
        defaults={
            "problems": {"train": "recall"},
            # A trace ends with its confidence: what a tiny model writes behind it would drift.
            "env": {"stop": tuple(f"{tenths / 10} }}" for tenths in range(11))},
            "learner": {"lr": 2e-3, "schedule": "linear"},
            "run": {"steps": 900},
            "agents": {"large": {"trained": False}},
        },
    )
)
register(
    EnvSpec(
        name="eapo-consultation",
        version=0,
        shipped=True,
        factory="coterie.envs.eapo_consultation:EapoConsultationEnv",
        settings=EapoConsultationSettings,
        roles=("policy", "expert"),
        evaluation="coterie.evaluation.eapo_consultation:EVALUATION",
        rereads=reads_nothing_again,
        learns=lambda settings: ("policy",),
        defaults={
            "problems": {
                "train": "chains?mix=0,1,0&min_length=4&max_length=4&answer=all",
                "held_out": 128,
            },
            "env": {
                # The tiny expert's replies break off before the last of four operations.
                "reply_tokens": 13,
                "schedule": "linear",
                "accept_span": 60.0,
                # Asking costs something once help is gone.
                "consult_penalty": 0.05,
                "penalty_start": 60,
            },
            "run": {"steps": 100},
            "agents": {"expert": {"trained": False}},
        },
    )
)
register(
    EnvSpec(
        name="sd-e2",
        version=0,
        shipped=True,
        factory="coterie.envs.sd_e2:SdE2Env",
        settings=SdE2Settings,
        roles=("alice",),
        evaluation="coterie.evaluation.sd_e2:EVALUATION",
        rereads=reads_nothing_again,
    )
)
register(
    EnvSpec(
        name="solo",
        version=0,
        shipped=True,
        factory="coterie.envs.solo:SoloEnv",
        settings=SoloSettings,
        roles=("solver",),
        evaluation="coterie.evaluation.solo:EVALUATION",
        defaults={
            # What a model of the tiny team reads, and how much it writes.
            "env": {
                "prompt": "Question: {question}\nLet's solve this step by step:",
                "max_new_tokens": 48,
            },
            "agents": {"solver": {"model": "tiny:alice"}},
        },
    )
)
