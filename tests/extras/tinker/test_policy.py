"""Answers of a server become completions, or failures of one answer."""

import asyncio
from types import SimpleNamespace as record
from typing import Any

import numpy as np
import pytest

from coterie.agents.models.codec import HFCodec
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import PolicyFailure, Prompt, Sampling, UserError
from coterie.extras.tinker.model import server_model as read_server_model
from coterie.extras.tinker.policy import ServerPolicy
from coterie.extras.tinker.settings import TinkerSettings
from tests.extras.tinker.conftest import FakeService

pytestmark = pytest.mark.usefixtures("fake_tinker")


class Client:
    """A sampling client that gives ``samples``, one after the other."""

    def __init__(self, *samples: Any) -> None:
        self.samples, self.asked = list(samples), list[Any]()

    async def sample_async(self, prompt: Any, num_samples: int, sampling_params: Any) -> Any:
        self.asked.append((prompt, num_samples, sampling_params))
        if isinstance(self.samples[0], Exception):
            raise self.samples[0]
        given, self.samples = self.samples[:num_samples], self.samples[num_samples:]
        return record(sequences=given)


def sample(tokens: Any, logprobs: Any = None, reason: str = "length") -> Any:
    if logprobs is None:
        logprobs = [-0.5] * len(tokens)
    return record(tokens=tokens, logprobs=logprobs, stop_reason=reason)


def answers(model: Any, client: Any, *prompts: list[int], **sampling: Any) -> list[Any]:
    policy = ServerPolicy(FakeService(), model)  # type: ignore[arg-type]
    policy.use(client, 3)
    chosen = Sampling(**{"max_new_tokens": 8, **sampling})

    async def ask() -> list[Any]:
        calls = (
            policy(Prompt(np.array(tokens), "", "alice_0", seed), chosen)
            for seed, tokens in enumerate(prompts)
        )
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(ask())


def test_equal_prompts_are_one_request(server_model) -> None:
    client = Client(*(sample([20 + i, 0]) for i in range(5)))
    given = answers(server_model, client, [5, 6], [7], [5, 6], [5, 6], [7])
    assert [(prompt, count) for prompt, count, _ in client.asked] == [([5, 6], 3), ([7], 2)]
    firsts = [int(answer.tokens[0]) for answer in given]
    assert sorted(firsts) == [20, 21, 22, 23, 24]
    assert {answer.weight_version for answer in given} == {3}
    assert {answer.finish_reason for answer in given} == {"eos"}
    assert server_model.tokens.sampled == 10
    assert server_model.tokens.prompt == 3


def test_what_is_asked_for(server_model) -> None:
    client = Client(sample([20, 0]))
    answers(server_model, client, [5], top_p=0.9, stop=("Q",))
    params = client.asked[0][2]
    assert (params.max_tokens, params.top_p) == (8, 0.9)
    assert params.temperature == pytest.approx(1)
    assert params.temperature != 1  # at which one answer would be greedy
    assert params.top_k == server_model.vocab_size  # of a small vocabulary: no filter
    assert params.stop == ["Q", "<|alice:end|>"]
    client = Client(sample([20, 0]))
    answers(server_model, client, [5], temperature=0.0)
    assert client.asked[0][2].temperature == 0
    assert client.asked[0][2].stop == [0]


def test_an_answer_ends_at_its_mark(server_model) -> None:
    (answer,) = answers(server_model, Client(sample([20, 21, 0, 30])), [5])
    assert answer.tokens.tolist() == [20, 21, 0]
    assert answer.finish_reason == "eos"
    assert answer.logprobs.tolist() == [-0.5] * 3


def test_a_mark_that_the_server_left_out_has_no_probability(server_model) -> None:
    (answer,) = answers(server_model, Client(sample([20, 21], reason="stop")), [5])
    assert answer.tokens.tolist() == [20, 21, 0]
    assert np.isnan(answer.logprobs).tolist() == [False, False, True]
    assert answer.finish_reason == "eos"
    (answer,) = answers(server_model, Client(sample([20, 21])), [5])
    assert answer.tokens.tolist() == [20, 21]
    assert answer.finish_reason == "length"


def test_an_answer_ends_with_the_token_that_completes_a_stop(
    server_model, alice_codec: HFCodec
) -> None:
    tokens = alice_codec.extend("7 + 2 = 9\nmore")
    stop = next(i for i, _ in enumerate(tokens) if "=" in alice_codec.decode(tokens[: i + 1]))
    (answer,) = answers(
        server_model, Client(sample(tokens)), [5], stop=("=",), max_new_tokens=len(tokens)
    )
    assert answer.tokens.tolist() == tokens[: stop + 1]
    assert answer.finish_reason == "stop"


def test_probabilities_after_a_filter_are_unknown(server_model) -> None:
    (answer,) = answers(server_model, Client(sample([20, 0])), [5], top_p=0.5)
    assert np.isnan(answer.logprobs).all()


@pytest.mark.parametrize(
    "wrong",
    [
        sample([360, 0]),
        sample([-1, 0]),
        sample([2**70]),
        sample([3.5, 0]),
        sample(["7", 0]),
        sample([True, 0]),
        sample([]),
        sample(None, [-0.5]),
        sample([[20], [0]]),
        sample([20, 0], [-0.5]),
        sample([20, 0], [-0.5, float("nan")]),
        sample([20, 0], [-0.5, 3.0]),
        sample([20, 0], [-0.5, float("-inf")]),
        sample([20, 0], ["x", "y"]),
        record(),
        None,
    ],
)
def test_an_unusable_sample_costs_only_itself(wrong, server_model) -> None:
    failed, answer = answers(server_model, Client(wrong, sample([20, 0])), [5], [5])
    assert isinstance(failed, PolicyFailure)
    assert answer.tokens.tolist() == [20, 0]


def test_a_row_that_fills_the_context_can_be_scored() -> None:
    model = read_server_model("alice", AgentSettings("tiny:alice", context=64), TinkerSettings())

    class Scores(Client):
        async def compute_logprobs_async(self, tokens: list[int]) -> list[float | None]:
            assert len(tokens) + 1 <= 64  # it samples a token after them
            return [None, *[-0.5] * (len(tokens) - 1)]

    (answer,) = answers(model, client := Scores(sample([20] * 99)), [5], max_new_tokens=99)
    policy = ServerPolicy(FakeService(), model)  # type: ignore[arg-type]
    policy.use(client, 3)
    tokens = [5, *answer.tokens.tolist()]
    assert len(tokens) == model.codec.context == 63
    assert len(asyncio.run(policy.score(tokens))) == 63


def test_a_missing_sample_is_a_failure(server_model) -> None:
    first, second = answers(server_model, Client(sample([20, 0])), [5], [5])
    assert first.tokens.tolist() == [20, 0]
    assert isinstance(second, PolicyFailure)


def test_an_error_of_the_server_ends_all_calls(server_model) -> None:
    error = UserError("the server is gone")
    assert answers(server_model, Client(error), [5], [5], [5]) == [error] * 3
