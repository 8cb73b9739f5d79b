"""What one path has written so far, and what all of them share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewards.consultation import ANSWER, final_answer
from rewards.overlap import squad_f1
from vocabulary import Problem, Scorer, Verdict


@dataclass
class Path:
    """One line of reasoning."""

    own: str = ""
    """What it wrote, summaries left out."""
    tokens: int = 0
    """What it wrote, summaries included."""
    summary: str = ""
    """Its latest; empty before the first."""
    done: bool = False
    failed: bool = False


@dataclass
class Game:
    """The paths of one problem."""

    problem: Problem
    seed: int
    paths: dict[str, Path]
    pauses: int = 0
    summarising: bool = False
    """Whether those who are asked now write summaries."""
    asked: list[str] = field(default_factory=list)
    pieces: list[tuple[str, str]] = field(default_factory=list)
    """(who, text) in order, for transcripts."""

    def transcript(self) -> str:
        """Everything that was written, for a human reader."""
        lines = [f"{self.problem.id}: gold answer {self.problem.gold}", ""]
        for who, text in self.pieces:
            lines += [f"== {who} ==", text, ""]
        return "\n".join(lines)


def to_check(text: str, problem: Problem) -> list[tuple[str, Problem]]:
    """What is asked of the scorer about a path that wrote ``text``: its answer, if it has one."""
    answer = final_answer(text)
    return [] if answer is None else [(f"{ANSWER} {answer}", problem)]


def final_info(path: Path, game: Game, role: str, scorer: Scorer) -> dict[str, Any]:
    """What was measured of a path."""
    checks = [] if path.failed else to_check(path.own, game.problem)
    verdict = scorer.check(*checks[0]) if checks else Verdict(False, None, "none")
    problem = game.problem.id
    return {
        "reward_terms": {"correct": float(verdict.correct)},
        "groups": {"problem": problem, "problem+role": f"{problem}/{role}"},
        "correct": bool(verdict.correct),
        "failed": path.failed,
        "answer": verdict.answer,
        "f1": squad_f1(final_answer(path.own) or "", [game.problem.gold]),
        "response_tokens": path.tokens,
        "expert_tokens": 0,
        "episode": {"problem": problem, "pauses": game.pauses},
    }


def summaries(game: Game, reader: str) -> Mapping[str, str]:
    """The other paths' latest summaries; a path that answered before its first pause has none."""
    others = {agent: path.summary for agent, path in game.paths.items() if agent != reader}
    return {agent: text for agent, text in others.items() if text}
