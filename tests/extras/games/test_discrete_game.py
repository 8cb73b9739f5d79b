"""PettingZoo environments of one's own with integer actions: positions, answers, pay, by hand."""

import asyncio
import enum
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from coterie import envs, rollouts
from coterie.datatypes import Completion, Prompt, Sampling, UserError
from coterie.datatypes.policy import listed_moves
from coterie.envs.token_view import TokenView
from coterie.extras.games.actions import Actions, names_in
from coterie.extras.games.discrete_game import SimultaneousGame
from coterie.extras.games.game import Game, GameEnv, GameSettings

HERE = f"discrete:{__name__}"


class Pennies(ParallelEnv[str, Any, Any]):
    """Matching pennies: ``even`` earns 1 where both show the same, ``odd`` where they differ."""

    metadata = {"name": "pennies_v0", "action_names": ["Heads", "Tails"]}  # noqa: RUF012
    render_mode = None

    def __init__(self, rounds: int = 2, space: Any = None) -> None:
        self.possible_agents = ["even", "odd"]
        self.agents: list[str] = []
        self.rounds, self.space = rounds, spaces.Discrete(2) if space is None else space

    def observation_space(self, agent: str) -> Any:
        return spaces.MultiDiscrete([3, 3])

    def action_space(self, agent: str) -> Any:
        return self.space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.played = self.possible_agents[:], 0
        return {agent: np.array([2, 2]) for agent in self.agents}, {a: {} for a in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        self.played += 1
        shown = np.array([actions["even"], actions["odd"]])
        pay = 1.0 if shown[0] == shown[1] else -1.0
        rewards, over = {"even": pay, "odd": -pay}, self.played == self.rounds
        agents, ends = self.agents, dict.fromkeys(self.agents, over)
        self.agents = [] if over else agents
        never = dict.fromkeys(agents, False)
        return dict.fromkeys(agents, shown), rewards, ends, never, {a: {} for a in agents}


class Take(enum.IntEnum):
    """How many stones."""

    ONE = 1
    TWO = 2


class Stones(AECEnv[str, Any, Any]):
    """Five stones; who takes the last is paid 1, the other -1."""

    metadata = {"name": "stones_v0"}  # noqa: RUF012
    render_mode = None
    Actions = Take

    def __init__(self, left: int = 5, mask_in: str = "observation") -> None:
        super().__init__()
        self.possible_agents, self.left, self.mask_in = ["first", "second"], left, mask_in

    def observation_space(self, agent: str) -> Any:
        return spaces.Dict(observation=spaces.Discrete(6), action_mask=spaces.MultiBinary(2))

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2, start=1)

    def _mask(self) -> Any:
        return np.array([1, self.stones > 1], np.int8)

    def observe(self, agent: str) -> Any:
        mask = {"action_mask": self._mask()} if self.mask_in == "observation" else {}
        return {"observation": self.stones, **mask}

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents, self.stones = self.possible_agents[:], self.left
        self.rewards = self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {a: {"action_mask": self._mask()} for a in self.agents}
        self.agent_selection = "first"

    def step(self, action: Any) -> None:
        me = self.agent_selection
        if self.terminations[me]:
            self._was_dead_step(action)
            return
        other = "second" if me == "first" else "first"
        self._cumulative_rewards[me] = 0
        self.stones -= int(action)
        assert self.stones >= 0
        over = self.stones == 0
        self.rewards = {me: int(over), other: -int(over)}
        self.terminations = dict.fromkeys(self.agents, over)
        self.infos = {a: {"action_mask": self._mask()} for a in self.agents}
        self.agent_selection = other
        self._accumulate_rewards()


def locks(space: Any) -> type[Pennies]:
    class Locks(Pennies):
        def __init__(self) -> None:
            super().__init__(rounds=1, space=space)

        def step(self, actions: dict[str, Any]) -> Any:
            for action in actions.values():
                assert self.space.contains(action)
            _, _, *rest = super().step({"even": 0, "odd": 0})
            pay = {agent: float(np.sum(action)) for agent, action in actions.items()}
            return {agent: np.zeros(2, int) for agent in pay}, pay, *rest

    return Locks


MultiLock = locks(spaces.MultiDiscrete([3, 5]))
BoxLock = locks(spaces.Box(-2, 4, (2, 2), np.int16))
FloatLock = locks(spaces.Box(0, 1, (2,)))
TextLock = locks(spaces.Text(9))


def test_all_who_act_at_once_are_asked_in_one_turn(play: Any) -> None:
    shown, rewards, infos = play(f"{HERE}:Pennies", ["heads", "1", "Tails.", " 1 ="])
    # The round before: even 0, odd 1. Differ: -1 for even; the same: +1.
    prompt = "{}\n0 Heads\n1 Tails\nMoves: 0 1 ="
    assert shown == [*[prompt.format("2 2")] * 2, *[prompt.format("0 1")] * 2]
    assert rewards == {"even_0": 0.0, "odd_0": 0.0}
    assert infos["even_0"]["moves"] == infos["odd_0"]["moves"] == 2
    assert play(f"{HERE}:Pennies?rounds=1", ["0", "0"])[1] == {"even_0": 1.0, "odd_0": -1.0}


@pytest.mark.parametrize(
    ("answers", "rewards"),
    [(["", "0"], [-1, 0]), (["0", "2"], [0, -1]), (["x", "headstrong"], [-1, -1])],
)
def test_an_illegal_answer_costs_who_gave_it_and_ends_the_game(
    play: Any, answers: list[str], rewards: list[int]
) -> None:
    _, paid, infos = play(f"{HERE}:Pennies", answers)
    assert paid == dict(zip(("even_0", "odd_0"), rewards))
    assert [infos[agent]["illegal"] for agent in paid] == [-reward for reward in rewards]


class Measured(Pennies):
    """Says more of its players than what they earned."""

    metadata = {**Pennies.metadata, "replicas": 3}  # noqa: RUF012
    info: dict[str, Any] = {"luck": 0.5, "stop": "now", "seen": {3}}  # noqa: RUF012

    def step(self, actions: dict[str, Any]) -> Any:
        *rest, infos = super().step(actions)
        return *rest, dict.fromkeys(infos, self.info)


class MeasuredStones(Stones):
    """The same of players who take turns."""

    metadata = {**Stones.metadata, "replicas": 3}  # noqa: RUF012

    def step(self, action: Any) -> None:
        super().step(action)
        self.infos = {agent: {**info, **Measured.info} for agent, info in self.infos.items()}


@pytest.mark.parametrize(
    ("name", "answers"), [("Measured", ["0"] * 4), ("MeasuredStones", ["2", "2", "1"])]
)
def test_what_an_environment_measured_is_logged(
    play: Any, name: str, answers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert envs.make(f"{HERE}:{name}").metadata["replicas"] == 3
    for info in play(f"{HERE}:{name}", answers)[2].values():
        assert info["luck"] == 0.5
        assert not {"stop", "seen", "action_mask"} & info.keys()
    monkeypatch.setattr(Measured, "info", {"loss_weight": 0.5})
    with pytest.raises(UserError, match="has loss_weight in its info, which discrete: does not"):
        play(f"{HERE}:{name}", answers)


@pytest.mark.parametrize("mask_in", ["observation", "info"])
def test_one_player_at_a_time(play: Any, mask_in: str) -> None:
    name = f"{HERE}:Stones?mask_in={mask_in}"
    shown, rewards, infos = play(name, ["two", "2", "take One"])
    # A mask is no part of what is seen; without it the one part has no name.
    named = "" if mask_in == "observation" else "observation: "
    # The first action is 1, as start says; two cannot be taken of a single stone.
    assert shown[0] == f"{named}5\n1 ONE\n2 TWO\nMoves: 1 2 ="
    assert shown[2] == f"{named}1\n1 ONE\nMoves: 1 ="
    assert rewards == {"first_0": 1.0, "second_0": -1.0}
    # Nobody knows whether an environment of one's own is a contest.
    assert "outcome" not in infos["first_0"]
    _, rewards, _ = play(name, ["2", "2", "two"])
    assert rewards == {"first_0": -1.0, "second_0": 0.0}


def test_several_numbers(play: Any) -> None:
    shown, rewards, _ = play(f"{HERE}:MultiLock", ["2 4", "(1, 0) or 9"])
    assert shown == ["2 2\nAnswer with 2 numbers: 0 to 2, 0 to 4 ="] * 2
    assert rewards == {"even_0": 6.0, "odd_0": 1.0}
    # The range of each entry holds, and there have to be enough.
    assert play(f"{HERE}:MultiLock", ["3 4", "1"])[1] == {"even_0": -1.0, "odd_0": -1.0}
    shown, rewards, _ = play(f"{HERE}:BoxLock", ["-2 4 4 4", "1-2-3-4"])
    assert shown[0] == "2 2\nAnswer with 4 numbers, each -2 to 4 ="
    assert rewards == {"even_0": 10.0, "odd_0": 10.0}


def test_masks_of_several_entries_lie_apart_or_in_a_row() -> None:
    actions = Actions(spaces.MultiDiscrete([2, 3]), title="it")
    for mask in ([[1, 1], [0, 1, 1]], np.array([1, 1, 0, 1, 1]), ([1, 1], np.array([0, 1, 1]))):
        info = {"action_mask": mask}
        assert actions.text(None, info) == "Answer with 2 numbers: 0 or 1, 1 or 2"
        assert actions.read("1 0", None, info) is None
        assert actions.read("1 2", None, info).tolist() == [1, 2]
    with pytest.raises(UserError, match=r"action_mask has 2 entries; .* needs 5"):
        actions.text(None, {"action_mask": [1, 1]})
    assert Actions(spaces.MultiBinary(3), title="it").text(None, {}).endswith("each 0 to 1")


def test_names_of_actions_are_found_in_order() -> None:
    class Env:
        metadata: dict[str, Any] = {}  # noqa: RUF012

    env: Any = Env()
    assert names_in(env, "a") is None
    env.metadata = {"action_names": ["w", "x"]}
    assert names_in(env, "a") == ["w", "x"]
    env.action_names = {"a": ["y", "z"]}
    assert names_in(env, "a") == ["y", "z"]
    env.actions = Take
    assert names_in(env, "a") == {1: "ONE", 2: "TWO"}
    env.get_action_meanings = lambda: ["NOOP", "FIRE"]
    assert names_in(env, "a") == ["NOOP", "FIRE"]


def test_the_first_name_or_number_of_an_answer_counts() -> None:
    actions = Actions(spaces.Discrete(3), ["go", "go on", "[stop]"], title="it")
    answers = ["Go on!", "GO", "2", "[Stop]", "go 2", "gone", "-1", "3"]
    assert [actions.read(a, None, {}) for a in answers] == [1, 0, 2, 2, 0, None, None, None]
    below = Actions(spaces.Discrete(3, start=-1), title="it")
    assert below.read("-1", None, {}) == -1
    assert listed_moves(f"Moves: {' '.join(below.listed(None, {}))} =") == ["-1", "0", "1"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["a"], "1 names for 2 actions"),
        (["a", "A"], "an action is named 'a'; give each action a name of its own"),
        (["1", "b"], "an action is named '1'"),
    ],
)
def test_invalid_names_of_actions_are_refused(names: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Actions(spaces.Discrete(2), names, title="it")


@pytest.mark.parametrize("view", ["token", "text"])
@pytest.mark.parametrize("name", ["Pennies", "Stones", "MultiLock", "BoxLock"])
def test_the_contract(view: Any, name: str) -> None:
    env = envs.make(f"{HERE}:{name}", view=view)
    envs.check_env(env, varied=False)


@pytest.mark.parametrize(
    "space",
    [spaces.MultiDiscrete([2, 2, 2, 2]), spaces.MultiBinary(3), spaces.Box(-9, 9, (2, 2), np.int8)],
)
def test_the_check_answers_with_as_many_numbers_as_are_asked_for(
    space: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Pennies):
        def __init__(self) -> None:
            super().__init__(space=space)

        def step(self, actions: dict[str, Any]) -> Any:
            raise RuntimeError("reached")

    monkeypatch.setitem(globals(), "Broken", Broken)
    with pytest.raises(RuntimeError, match="reached"):
        envs.check_env(envs.make(f"{HERE}:Broken", view="text"), varied=False)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("FloatLock", r"even acts in Box\(.*float32\); it needs Discrete, MultiDiscrete"),
        ("TextLock", "env 'discrete:.*Actions in text need no discrete: before the name"),
        ("Pennies?coins=3", "has no parameter 'coins'"),
        ("Penny", "Penny' cannot be loaded"),
        ("Take", "cannot be built"),
    ],
)
def test_unknown_names_are_refused(name: str, sentence: str) -> None:
    for call in (envs.make, envs.spec):
        with pytest.raises(UserError, match=sentence):
            call(f"{HERE}:{name}")


@pytest.mark.parametrize("name", ["Pennies", "Stones"])
def test_the_refusal_names_the_way_out(name: str) -> None:
    with pytest.raises(UserError, match=rf"--env {HERE}:{name} asks for them in text"):
        envs.make(f"{__name__}:{name}")
    with pytest.raises(UserError, match=rf"--env {HERE}:{name} asks for them in text"):
        envs.spec(f"{__name__}:{name}")
    with pytest.raises(UserError, match="--env discrete:NAME asks"):
        envs.check_env(globals()[name]())


def test_a_continuous_action_space_is_refused_without_a_hint() -> None:
    with pytest.raises(UserError) as refused:
        envs.make(f"{__name__}:FloatLock")
    assert "discrete:" not in str(refused.value)


def test_a_game_asks_for_no_rereading() -> None:
    rereads = envs.spec(f"{HERE}:Pennies").rereads
    assert rereads is not None
    assert rereads(None) is False


class Stuck(Pennies):
    """From the second round on, nobody has a move."""

    rounds_with_moves = 1

    def _masked(self, seen: dict[str, Any]) -> dict[str, Any]:
        mask = np.full(2, self.played < self.rounds_with_moves)
        return {a: {"observation": part, "action_mask": mask} for a, part in seen.items()}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        seen, infos = super().reset(seed, options)
        return self._masked(seen), infos

    def step(self, actions: dict[str, Any]) -> Any:
        seen, *rest = super().step(actions)
        return self._masked(seen), *rest


class OldReset(Pennies):
    """Gives observations alone, as Gym did."""

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed, options)[0]


class OldStep(Pennies):
    """Gives one end for both, as Gym did."""

    def step(self, actions: dict[str, Any]) -> Any:
        seen, rewards, ends, _, infos = super().step(actions)
        return seen, rewards, ends, infos


class Undead(Pennies):
    """Ends, and leaves everybody in agents."""

    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        self.agents = self.possible_agents[:]
        return result


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Undead", r"Undead: step\(\) ends even, who is still in agents"),
        ("Stuck", "even: action_mask leaves no move"),
        ("OldReset", r"OldReset: reset\(\) must give 2 values: observations, infos"),
        ("OldStep", r"OldStep: step\(\) must give 5 values"),
    ],
)
def test_a_game_that_cannot_be_played_is_named(name: str, sentence: str) -> None:
    env = globals()[name]()
    actions = {p: Actions(env.action_space(p), title=p) for p in env.possible_agents}
    game = SimultaneousGame(env, actions)

    def played() -> None:
        game.reset(0)
        for _ in range(2):
            game.asks()
            game.play("0")
            game.play("1")

    with pytest.raises(UserError, match=sentence):
        played()


class Endless(Game):
    """One player makes moves for ever."""

    players = ("me",)

    def reset(self, seed: int) -> None:
        pass

    def asks(self) -> Any:
        return {"me": ("Go on", ())}

    def play(self, answer: str) -> bool:
        return True

    def rewards(self) -> Any:
        return {"me": 0.0}


def test_a_game_has_all_of_its_moves() -> None:
    """A rollout cuts off other episodes after 256 turns."""

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        return Completion(np.array([48]), np.zeros(1, np.float32), "stop")

    game = GameEnv("endless", lambda settings: Endless(), GameSettings(max_moves=300))
    policies = {"me": policy}
    playing = rollouts.play(TokenView(game), policies, seed=0, options={}, sampling=Sampling(2))
    rows = asyncio.run(playing).trajectories
    assert {row.status for row in rows} == {"ok"}
    assert rows[-1].info["moves"] == 300
