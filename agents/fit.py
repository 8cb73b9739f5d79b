"""What a model's context leaves room for."""

from dataclasses import replace

from vocabulary import PolicyFailure, Prompt, Sampling


def fitted(prompt: Prompt, sampling: Sampling, *, context: int, vocab_size: int) -> Sampling:
    """``sampling``, cut where the model's context is full.

    Raises :class:`vocabulary.PolicyFailure` for a prompt that is empty, fills the context, or holds
    ids that the model lacks.
    """
    length = len(prompt.tokens)
    room = context - length
    if length == 0:
        raise PolicyFailure("the prompt is empty")
    if sampling.max_new_tokens < 1:
        raise PolicyFailure("no new token is allowed")
    if room < 1:
        raise PolicyFailure(f"the prompt has {length} tokens and the context {context}")
    if prompt.tokens.min() < 0 or prompt.tokens.max() >= vocab_size:
        raise PolicyFailure("the prompt holds ids beyond the model's vocabulary")
    return replace(sampling, max_new_tokens=room) if sampling.max_new_tokens > room else sampling
