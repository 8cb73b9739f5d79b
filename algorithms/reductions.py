"""How the losses of tokens become one number: a weight for each token.

As a sum of weighted tokens, a reduction does not care how rows are split into micro-batches: its
denominators are those of the whole optimizer step.

Legend: B rows, T tokens.
"""

from typing import Literal

from torch import Tensor

Reduction = Literal["sequence-mean", "token-mean", "constant-length"]


def token_weights(
    mask_BT: Tensor, reduction: Reduction, *, rows: int, tokens: int, length: int = 0
) -> Tensor:
    """(B, T) weights, 0 outside the mask; the reduced loss is ``(weights * loss).sum()``.

    Args:
        mask_BT: true on a policy's own sampled tokens.
        rows: rows in the whole optimizer step.
        tokens: sampled tokens in the whole optimizer step.
        length: the constant of ``constant-length``.
    """
    mask_BT = mask_BT.float()
    match reduction:
        case "sequence-mean":  # 1/B sum_i 1/|y_i| sum_t        GRPO, arXiv:2402.03300
            return mask_BT / (mask_BT.sum(-1, keepdim=True).clamp(min=1) * rows)
        case "token-mean":  # 1/sum_i |y_i| sum_i sum_t         DAPO, arXiv:2503.14476
            return mask_BT / tokens
        case "constant-length":  # 1/(B L) sum_i sum_t          Dr. GRPO, arXiv:2503.20783
            return mask_BT / (rows * length)
