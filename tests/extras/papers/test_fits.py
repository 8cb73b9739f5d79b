"""COREA's probe and router: widths, split, batches, epochs (arXiv:2603.03752, appendix A)."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from coterie.agents.models.loading import load_team
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import UserError
from coterie.evaluation.compare.policies import NamedPolicy, find_policy
from coterie.extras.papers import router as module
from coterie.extras.papers.probe import fit_probe
from coterie.extras.papers.router import fit_router, route


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of the optimizer at every step that it takes."""
    taken: list[dict[str, Any]] = []
    step = torch.optim.AdamW.step

    def counted(self: Any, *more: Any) -> Any:
        taken.append(self.param_groups[0])
        return step(self, *more)

    monkeypatch.setattr(torch.optim.AdamW, "step", counted)
    return taken


@pytest.fixture
def forwards(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of every batch whose loss the probe computes."""
    rows: list[int] = []
    forward = nn.BCEWithLogitsLoss.forward

    def counted(self: Any, input: Any, target: Any) -> Any:
        rows.append(len(target))
        return forward(self, input, target)

    monkeypatch.setattr(nn.BCEWithLogitsLoss, "forward", counted)
    return rows


def layers(probe: nn.Module) -> Iterator[tuple[int, int]]:
    return (
        (own.in_features, own.out_features) for own in probe.modules() if isinstance(own, nn.Linear)
    )


def test_the_probe_is_that_of_appendix_a1(steps: list[dict[str, Any]], forwards: list[int]) -> None:
    """Two layers of 2,048 and 1,024, a sigmoid; 9:1; batches of 32; 5e-5; 20 epochs."""
    states_ND = torch.randn(100, 6, generator=torch.Generator().manual_seed(0))
    probe = fit_probe(states_ND, np.arange(100) % 2)
    assert list(layers(probe)) == [(6, 2048), (2048, 1024), (1024, 1)]
    assert isinstance(list(probe.modules())[-1], nn.Sigmoid)
    # 90 rows are batches of 32, 32 and 26; 10 are held out.
    assert forwards[:4] == [32, 32, 26, 10]
    assert len(forwards) == 20 * 4
    assert len(steps) == 20 * 3
    assert {group["lr"] for group in steps} == {5e-5}
    with torch.no_grad():
        score_N = probe(states_ND)
    assert score_N.shape == (100,)
    assert ((score_N > 0) & (score_N < 1)).all()


@pytest.mark.parametrize(("losses", "kept"), [([1, 3, 2], 1), ([3, 1, 2], 2), ([3, 2, 1], 3)])
def test_the_probe_keeps_the_weights_of_the_lowest_held_out_loss(
    losses: list[int], kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 rows a tenth is held out; its losses, epoch by epoch, are the given ones."""
    states_ND = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
    forward = nn.BCEWithLogitsLoss.forward

    def fitted(held_out: list[int]) -> torch.Tensor:
        told = iter(held_out)

        def rigged(self: Any, input: Any, target: Any) -> Any:
            if len(target) == 2:
                return torch.tensor(float(next(told)))
            return forward(self, input, target)

        monkeypatch.setattr(nn.BCEWithLogitsLoss, "forward", rigged)
        epochs = len(held_out)
        probe = fit_probe(states_ND, np.arange(20) % 2, epochs=epochs, learning_rate=1e-2)
        monkeypatch.undo()
        with torch.no_grad():
            return probe(states_ND)

    # So many epochs, of which the last is the best.
    assert torch.equal(fitted(losses), fitted([3, 2, 1][:kept]))


@pytest.mark.parametrize("count", [0, 1])
def test_a_probe_needs_two_responses(count: int) -> None:
    """One has no spread, and could not be both held out and trained on."""
    with pytest.raises(UserError, match=f"two responses at least, and here is {count}"):
        fit_probe(torch.zeros(count, 3), np.ones(count))
    probe = fit_probe(torch.eye(2), [0, 1], epochs=1)
    assert probe(torch.eye(2)).isfinite().all()


def test_the_probes_epochs_and_batch_are_settings(
    steps: list[dict[str, Any]], forwards: list[int]
) -> None:
    states_ND = torch.randn(20, 3, generator=torch.Generator().manual_seed(2))
    fit_probe(states_ND, np.arange(20) % 2, epochs=3, batch=6, learning_rate=1e-4)
    assert forwards[:4] == [6, 6, 6, 2]
    assert len(steps) == 9
    assert steps[0]["lr"] == 1e-4


def small(tuning: Any = "auto") -> Any:
    spec = model_spec(AgentSettings("tiny:small", tuning=tuning))
    return load_team({"router": spec}, trained={"router"}, seed=0)["router"]


def test_the_router_is_that_of_appendix_a2(
    steps: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two epochs of batches of 32 at 5e-5; its target is the accuracy of the responses."""
    rows: list[Any] = []
    loss = module._loss

    def counted(model: Any, chosen: Any) -> Any:
        rows.append(chosen)
        return loss(model, chosen)

    monkeypatch.setattr(module, "_loss", counted)
    model = small()
    questions = [f"{n} + 1 =" for n in range(40)]
    accuracy = [n % 9 / 8 for n in range(40)]
    fit_router(model, questions, accuracy, learning_rate=5e-5)
    assert [len(chosen) for chosen in rows] == [32, 8] * 2
    assert len(steps) == 4
    assert {group["lr"] for group in steps} == {5e-5}
    targets = {model.codec.decode(answer[:-1]).strip() for chosen in rows for _, answer in chosen}
    assert targets == {"0.00", "0.12", "0.25", "0.38", "0.50", "0.62", "0.75", "0.88", "1.00"}


def test_the_router_reads_the_question_alone() -> None:
    """The words of section 4.2."""
    asked: list[str] = []
    model = small()
    codec = model.codec

    class Seen:
        def open(self, text: str) -> Any:
            asked.append(text)
            return codec.open(text)

        def __getattr__(self, name: str) -> Any:
            return getattr(codec, name)

    object.__setattr__(model, "codec", Seen())
    routing = route(model, ["What is 2 + 2?"])
    assert asked == [
        "Question: What is 2 + 2? Instruction: Estimate and output the probability (0.0-1.0) that "
        "a small language model (<10B) can answer the question correctly."
    ]
    assert routing.score_Q.shape == routing.prompt_Q.shape == routing.output_Q.shape == (1,)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """(model, settings) of every router that is to be fitted; none is."""
    seen: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(module, "fit_router", lambda model, *_, **more: seen.append((model, more)))
    monkeypatch.setattr(module, "route", lambda model, scored: None)
    return seen


def routed(base: NamedPolicy, **settings: Any) -> None:
    nothing: Any = SimpleNamespace(correct_QN=np.array([[1.0, 0.0]]))
    how = {"seed": 0, "tuning": "auto", "learning_rate": 5e-5, "epochs": 2, "batch": 8} | settings
    module.routing_by(base, ["2 + 2 ="], nothing, ["3 + 3 ="], **how)


@pytest.mark.parametrize("tuning", ["auto", "full", "lora"])
def test_which_weights_of_the_router_move(tuning: Any, fitted: list[Any]) -> None:
    routed(find_policy("base", "tiny:small"), tuning=tuning)
    ((model, settings),) = fitted
    assert (settings["epochs"], settings["batch"], settings["learning_rate"]) == (2, 8, 5e-5)
    names = list(model.handle.parameters())
    assert any("lora" in name for name in names) == (tuning == "lora")


def test_the_router_reads_its_model_as_the_run_does(fitted: list[Any]) -> None:
    settings = AgentSettings("tiny:small", trained=False, dtype="bfloat16", context=40)
    routed(NamedPolicy("base", settings, ""))
    ((model, _),) = fitted
    assert (model.handle.dtype, model.handle.context) == (torch.bfloat16, 40)
