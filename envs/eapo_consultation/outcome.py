"""What a conversation is worth at its end."""

from collections.abc import Mapping
from typing import Any

from envs.eapo_consultation.episode import Consultation
from envs.eapo_consultation.report import expert_infos, groups, measured, whole_episode
from envs.eapo_consultation.settings import EapoConsultationSettings
from envs.roles import role_of
from rewards.consultation import ANSWER, answer_reward, consult_penalty, final_answer, well_formed
from rewards.overlap import squad_f1
from vocabulary import Problem, Scorer, ScoreRequests, Verdict


def final_requests(
    episode: Consultation, own: str, settings: EapoConsultationSettings
) -> ScoreRequests:
    """What :func:`final_infos` will ask of the scorer once the policy has written ``own``."""
    checked = [one.result for one in episode.asked if one.result]
    answer = final_answer(own, opened=settings.opens_thinking)
    if answer is not None:
        checked.append(_stated(answer))
    return ScoreRequests(tuple((text, episode.problem) for text in checked))


def final_infos(
    episode: Consultation,
    settings: EapoConsultationSettings,
    scorer: Scorer,
    *,
    policy: str,
    experts: Mapping[int, str],
) -> dict[str, dict[str, Any]]:
    """Agent -> info of the last step."""
    problem, opened = episode.problem, settings.opens_thinking
    answer = final_answer(episode.own, opened=opened)
    told = [bool(one.result) and scorer.check(one.result, problem).correct for one in episode.asked]
    report = measured(
        episode,
        _verdict(answer, problem, scorer),
        formatted=well_formed(episode.own, answered_calls=episode.answered_calls, opened=opened),
        f1=squad_f1(answer or "", [problem.gold]),
        told=told,
    )
    terms = _terms(report, settings, episode)
    infos = {policy: report | {"reward_terms": terms, "loss_weight": 1.0}}
    for agent, asked in expert_infos(episode, experts).items():
        # Experts are frozen: nothing that they do is paid.
        infos[agent] = asked | {"reward_terms": dict.fromkeys(terms, 0.0), "loss_weight": 0.0}
    for agent, info in infos.items():
        info["groups"] = groups(problem.id, role_of(agent))
        info["episode"] = whole_episode(episode, told)
    return infos


def _terms(
    report: Mapping[str, Any], settings: EapoConsultationSettings, episode: Consultation
) -> dict[str, float]:
    if episode.mode != "train":
        return {"correct": 0.0 if report["failed"] else float(report["correct"])}
    if report["failed"]:
        return {"answer": 0.0, "consulting": 0.0}
    value = answer_reward(
        settings.answer_reward,
        correct=report["correct"],
        f1=report["f1"],
        formatted=report["formatted"],
    )
    counted = report["calls" if settings.penalised == "dispatched" else "accepted"]
    free = episode.step <= settings.penalty_start
    if free or (settings.penalty_only_if_right and not report["correct"]):
        counted = 0
    return {"answer": value, "consulting": consult_penalty(counted, settings.consult_penalty)}


def _verdict(answer: str | None, problem: Problem, scorer: Scorer) -> Verdict:
    if answer is None:
        return Verdict(False, None, "none")
    return scorer.check(_stated(answer), problem)


def _stated(answer: str) -> str:
    """The answer as the scorer finds it: nothing else that was written can be mistaken for it."""
    return f"{ANSWER} {answer}"
