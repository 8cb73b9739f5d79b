"""The place of a role's system message in a chat template (``--agents.ROLE.system``)."""

from typing import Any

from coterie.agents.models.load_tokenizer import load_tokenizer
from coterie.agents.models.rendering import render
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError

_SYSTEM, _USER = "qSystem0q", "qUser0q"


def system_markup(tokenizer: Any) -> tuple[str, str, str]:
    """Return the template's text before, between and after a system message and the user's first
    message, up to the assistant's turn.

    Raises:
        UserError: why the template has no place for a system message.
    """
    if not tokenizer.chat_template:
        raise UserError("has no chat template")
    conversation = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _USER}]
    (shown,) = render(tokenizer, [conversation])
    if shown.text is None:
        raise UserError(f"has a chat template without a system role ({shown.why})")
    before, _, rest = shown.text.partition(_SYSTEM)
    between, _, after = rest.partition(_USER)
    once = shown.text.count(_SYSTEM) == shown.text.count(_USER) == 1
    if not once or _USER in before:
        raise UserError(
            "has a chat template without a system role (it leaves the message out, repeats it, or "
            "puts it behind the user's)"
        )
    return before, between, after


def check_system(spec: ModelSpec, role: str) -> None:
    """Refuse a system message for a model whose template has no place for it, before weights are
    read.

    Raises:
        UserError: names the role and the model.
    """
    if not spec.system:
        return
    try:
        system_markup(load_tokenizer(spec))
    except UserError as why:
        raise UserError(
            f"--agents.{role}.system: {spec.model} {why}; leave it out, write it into the "
            "environment's prompt, or take a model whose template has a system role"
        ) from None
