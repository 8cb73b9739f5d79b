"""A trial call of custom advantages and surrogates, before any model is loaded."""

import numpy as np

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.credit import custom_advantage
from coterie.datatypes import UserError


def try_custom_parts(algorithm: Algorithm) -> None:
    """Call a custom advantage and a custom surrogate on small inputs.

    Raises:
        UserError: a part raises or returns the wrong kind of value.
    """
    if algorithm.advantage:
        # Two groups, one of them without variance.
        rewards = np.array([1.0, 0.0, 0.5, 0.25, 0.25])
        custom_advantage(algorithm.advantage, rewards, np.array([0, 0, 0, 1, 1]))
    if algorithm.has_custom_surrogate:
        _try_surrogate(algorithm)


def _try_surrogate(algorithm: Algorithm) -> None:
    import torch

    from coterie.algorithms.surrogates import surrogate, terms_of

    choice = algorithm.surrogate
    name = f"algo.surrogate {type(choice).__name__}"
    if surrogate.dispatch(type(choice)) is surrogate.dispatch(object):
        raise UserError(
            f"{name} has no formula: decorate a function of it with "
            "coterie.algorithms.surrogate.register"
        )
    # Two rows of three tokens, with one advantage of each sign.
    logp_BT = torch.full((2, 3), -1.0, requires_grad=True)
    old_BT = torch.tensor([[-1.0, -1.5, -0.5], [-1.0, -2.0, -1.0]])
    mask_BT = torch.tensor([[True, True, True], [True, True, False]])
    terms = terms_of(choice, logp_BT, old_BT, torch.tensor([[1.0], [-1.0]]), mask_BT)
    loss_BT = terms.loss_BT[mask_BT]
    if not loss_BT.isfinite().all() or not loss_BT.requires_grad:
        raise UserError(f"{name} must give a finite loss that depends on the log-probabilities")
