"""The supervised step and the model it starts from."""

import dataclasses

import pytest
import torch

from miniatures import fitting
from miniatures.build import warm_start
from miniatures.chains import draw_strong
from miniatures.fitting import NoConvergence, collate
from miniatures.network import build_model, digit_circles
from miniatures.recipe import Example
from miniatures.recipes import RECIPES
from miniatures.tokenizers import build_tokenizer


def test_only_answers_and_their_end_are_targets():
    tokenizer = build_tokenizer(RECIPES["alice"])
    ids_BT, targets_BT = collate(tokenizer, [Example("7 +", " 8 ="), Example("7", " 1")])
    seven, plus, eight, equals, unit = (
        tokenizer.encode(text)[0] for text in ("7", " +", " 8", " =", " 1")
    )
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    assert ids_BT.tolist() == [[seven, plus, eight, equals, end], [seven, unit, end, pad, pad]]
    assert targets_BT.tolist() == [[-100, -100, eight, equals, end], [-100, unit, end, -100, -100]]


def test_digits_start_on_circles():
    torch.manual_seed(0)
    circles_10D = digit_circles(64)
    products = circles_10D @ circles_10D.T
    # Unit vectors whose products depend on the distance modulo 10 alone.
    for shift in range(10):
        diagonal = torch.stack([products[digit, (digit + shift) % 10] for digit in range(10)])
        assert torch.allclose(diagonal, diagonal[:1].expand(10), atol=1e-5)
    assert torch.allclose(products.diagonal(), torch.ones(10), atol=1e-5)
    # Nine independent directions (the tenth wave, the constant, is left out).
    assert torch.linalg.matrix_rank(circles_10D) == 9


@pytest.mark.parametrize("role", RECIPES)
def test_models_are_small_tied_and_single_precision(role):
    model = build_model(RECIPES[role], build_tokenizer(RECIPES[role]))
    assert model.config.model_type == "qwen3"
    assert sum(p.numel() for p in model.parameters()) * 4 < 2e6
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert model.config.rope_parameters["rope_theta"] == 100.0


def changed(role, **changes):
    return dataclasses.replace(RECIPES[role], **changes)


class Reports(list):
    """Keeps what a training reports, less the loss."""

    def __call__(self, phase, step, steps, loss):
        assert loss > 0
        self.append((phase, step, steps))


@pytest.mark.parametrize(
    ("role", "first", "second"),
    [("bob", "strong operations", "all operations"), ("small", "digits", "names")],
)
def test_two_phases_and_the_same_weights_for_the_same_seed(role, first, second):
    recipe = changed(role, batch=2, first_steps=3, first_loss=100.0, second_steps=2)
    tokenizer = build_tokenizer(recipe)
    runs = []
    for _ in range(2):
        torch.manual_seed(recipe.seed)
        before = dict(build_model(recipe, tokenizer).named_parameters())
        reports = Reports()
        model = warm_start(recipe, tokenizer, reports)
        # Phase 1 ends with its first step, whose loss is below 100.
        assert reports == [(first, 1, 3), (second, 1, 2), (second, 2, 2)]
        assert all(not torch.equal(before[name], p) for name, p in model.named_parameters())
        runs.append(model.state_dict())
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])


def test_operations_can_be_learned_one_after_the_other(monkeypatch):
    steps = {"first_steps": 3, "first_loss": 100.0, "second_steps": 0}
    recipe = changed("carol", batch=2, gradual=True, warmup=4, **steps)
    shown, rates = [], []

    def draw(operators, length, uniform):
        shown.append(operators)
        return draw_strong(operators, length, uniform)

    def update(model, optimizer, ids_BT, targets_BT):
        rates.append(optimizer.param_groups[0]["lr"])
        return 1.0

    monkeypatch.setattr("miniatures.chains.draw_strong", draw)
    monkeypatch.setattr(fitting, "update", update)
    warm_start(recipe, build_tokenizer(recipe), Reports())
    # Every loss of 1 is below 100: one step with "+" alone, one with both, two examples each.
    assert shown == ["+", "+", "+#", "+#"]
    # The rate climbs to its full value over four steps.
    assert rates == [recipe.learning_rate / 4, recipe.learning_rate / 2]


def test_a_plateau_is_given_up():
    recipe = changed("bob", batch=2, first_steps=2, first_loss=0.0)
    with pytest.raises(NoConvergence, match="after 2 steps"):
        warm_start(recipe, build_tokenizer(recipe), lambda *report: None)
