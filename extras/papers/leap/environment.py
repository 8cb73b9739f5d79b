"""Learning from peers: paths that pause, summarise, and read what others have found.

| | |
|---|---|
| Creation | ``coterie.make("coterie.extras.papers.leap:LeapEnv")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``policy_0 .. policy_{n-1}`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

A baseline without training (LeaP, arXiv:2505.07787; a row of EAPO's table, arXiv:2509.23730).
n paths answer one problem. After every T tokens each path without an answer writes a summary
between ``<summarize>`` tags. A router picks the summaries that each path reads; it then continues.

Observation: the question, then the opening of a summary, then peers' summaries, as continuations
of the path's turn. ``active`` marks the paths that must act now.

Rewards: 1 for a right answer, at the end. An active path without an entry in ``actions`` has
failed: it earns 0 and writes no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.datatypes import Problem, ScoreRequests, UserError, Verdict, derive_seed
from coterie.envs.conversation import ConversationEnv
from coterie.envs.env_spec import never_rereads
from coterie.envs.problem_env import metadata_of
from coterie.envs.prompts import lone_prompt
from coterie.envs.turns import Answers, Ask, Conversation, Outcome, Piece, Turn
from coterie.extras.papers.leap.settings import LeapSettings, Router
from coterie.rewards.consultation import answer_f1, graded_part, has_answered

LONGEST = 2000
"""Number of characters of a summary that are compared."""


def levenshtein(first: str, second: str) -> int:
    """Count the edits (insert, delete, replace) that turn ``first`` into ``second``."""
    left = np.frombuffer(first.encode("utf-32-le", "replace"), np.uint32)
    right = np.frombuffer(second.encode("utf-32-le", "replace"), np.uint32)
    positions = np.arange(len(right) + 1)
    row = positions.copy()
    for number, character in enumerate(left, start=1):
        best = np.minimum(row[1:] + 1, row[:-1] + (right != character))
        row = np.concatenate(([number], best))
        # An insertion costs 1 per position: subtract that, then take the running minimum.
        row = np.minimum.accumulate(row - positions) + positions
    return int(row[-1])


def similarity(first: str, second: str) -> float:
    """1 minus the edit distance over the longer length, in [0, 1]."""
    first, second = first[:LONGEST], second[:LONGEST]
    longest = max(len(first), len(second))
    return 1.0 if not longest else 1 - levenshtein(first, second) / longest


def choose(
    summary: str, others: Mapping[str, str], peers: int, router: Router, seed: int
) -> list[str]:
    """Return the paths whose summaries the path of ``summary`` reads, at most ``peers`` of them.

    Args:
        summary: the path's own summary.
        others: path -> summary. Ties are broken by the order of the paths.
        peers: maximum number of paths.
        router: see :class:`coterie.extras.papers.leap.settings.LeapSettings`.
        seed: random seed of the ``random`` router.

    >>> choose("abcd", {"b": "abcx", "c": "wxyz", "d": "abyz"}, 2, "hybrid", 0)
    ['b', 'c']
    """
    if router == "random":
        return sorted(others, key=lambda path: derive_seed("leap", seed, path))[:peers]
    near = sorted(others, key=lambda path: -similarity(summary, others[path]))
    far = sorted(others, key=lambda path: similarity(summary, others[path]))
    if router == "clustered":
        return near[:peers]
    if router == "dispersed":
        return far[:peers]
    first = near[: (peers + 1) // 2]
    return [*first, *(path for path in far if path not in first)][:peers]


SUMMARY = ("<summarize>", "</summarize>")
PEERS = ("<peer_summaries>", "</peer_summaries>")


@dataclass
class Path:
    """One line of reasoning."""

    text: str = ""
    """The path's text without summaries."""
    tokens: int = 0
    """Tokens of the path, with summaries."""
    summary: str = ""
    """Its latest summary; empty before the first."""
    failed: bool = False

    def checks(self, problem: Problem) -> list[str]:
        """The texts that the scorer must check: the path's answer, if it has one."""
        check = None if self.failed else graded_part(self.text, problem.kind)
        return [] if check is None else [check]


class LeapEnv(ConversationEnv):
    """The text environment; ``coterie.make`` adds the token view."""

    title = "leap"
    metadata = metadata_of("leap_v0", "problem", "problem+role", default_group="problem+role")
    settings: LeapSettings
    settings_class = LeapSettings
    default_roles = ("policy",)
    rereads = staticmethod(never_rereads)

    def check_roles(self) -> None:
        if len(self.roles) != 1:
            raise UserError(f"leap: one role writes all paths, not {len(self.roles)}.")

    def places(self) -> Mapping[str, int]:
        return {self.roles[0]: self.settings.paths}

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        settings = self.settings
        paths = {agent: Path() for agent in self.possible_agents}
        going_on, pauses = list(paths), 0
        question = lone_prompt(problem.question, settings.prompt_style, problem.kind)
        texts: dict[str, str] = dict.fromkeys(paths, question)
        piece: Piece = "message"

        def needed(answers: Answers) -> ScoreRequests:
            # Any text may end the episode.
            ends = [Path(path.text + answers.get(agent, "")) for agent, path in paths.items()]
            return ScoreRequests(
                tuple((text, problem) for end in ends for text in end.checks(problem))
            )

        while True:
            # Each path writes T tokens; after its last pause, all that remain.
            last = pauses >= settings.pauses
            limit = settings.max_new_tokens if last else settings.block_tokens
            answers = yield Turn(self._ask(paths, texts, limit, piece), needed)
            for agent in going_on:
                self._count(paths[agent], answers.get(agent))
                paths[agent].text += answers.get(agent, "")
            going_on = [
                agent
                for agent in going_on
                if not last
                and self._may_go_on(paths[agent])
                and answers[agent]
                and not has_answered(paths[agent].text, problem.kind)
            ]
            if not going_on:
                break

            # Paths without an answer write a summary ...
            texts, piece = dict.fromkeys(going_on, f"\n{SUMMARY[0]}"), "continuation"
            summarise = self._ask(paths, texts, settings.summary_tokens, piece, SUMMARY[1])
            answers = yield Turn(summarise, lambda answers: needed({}))
            pauses += 1
            for agent in going_on:
                self._count(paths[agent], answers.get(agent))
                paths[agent].summary = answers.get(agent, "").partition(SUMMARY[1])[0].strip()
            going_on = [agent for agent in going_on if self._may_go_on(paths[agent])]
            if not going_on:
                break

            # ... and read the summaries of some others.
            texts = {agent: self._peers(paths, agent, pauses) for agent in going_on}

        return self._outcome(problem, paths, pauses)

    def _ask(
        self,
        paths: Mapping[str, Path],
        texts: Mapping[str, str],
        limit: int,
        piece: Piece,
        *stop: str,
    ) -> dict[str, Ask]:
        """Ask the paths of ``texts`` for at most ``limit`` tokens, within each one's budget."""
        most = self.settings.max_new_tokens
        return {
            agent: Ask(text, piece, min(limit, most - paths[agent].tokens), stop)
            for agent, text in texts.items()
        }

    def _count(self, path: Path, answer: str | None) -> None:
        path.failed = answer is None
        path.tokens += self.meters[self.roles[0]].count(answer or "")

    def _may_go_on(self, path: Path) -> bool:
        return not path.failed and path.tokens < self.settings.max_new_tokens

    def _peers(self, paths: Mapping[str, Path], reader: str, pauses: int) -> str:
        """What a path reads after a pause; paths that answered before it may have no summary."""
        others = {a: path.summary for a, path in paths.items() if a != reader and path.summary}
        seed = derive_seed("leap", self.episode_seed, pauses, reader)
        settings = self.settings
        chosen = choose(paths[reader].summary, others, settings.peers, settings.router, seed)
        return "\n".join(["", PEERS[0], *(others[peer] for peer in chosen), PEERS[1], ""])

    def _outcome(self, problem: Problem, paths: Mapping[str, Path], pauses: int) -> Outcome:
        verdicts = {
            agent: next(
                (self.scorer.check(text, problem) for text in path.checks(problem)),
                Verdict(False, None, "none"),
            )
            for agent, path in paths.items()
        }
        return Outcome(
            terms={agent: {"correct": v.credit} for agent, v in verdicts.items()},
            measured={
                agent: {
                    "correct": bool(verdict.correct),
                    "answer": verdict.answer,
                    "f1": answer_f1(paths[agent].text, verdict, problem),
                    "response_tokens": paths[agent].tokens,
                    "expert_tokens": 0,
                }
                for agent, verdict in verdicts.items()
            },
            episode={"pauses": pauses},
            truncated=[agent for agent, verdict in verdicts.items() if verdict.answer is None],
        )
