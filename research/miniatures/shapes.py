"""Models of random weights, shaped like those of the papers: for rehearsals without a download.

``PYTHONPATH=research python -m miniatures.shapes Qwen/Qwen2.5-3B-Instruct FOLDER --scale 0.01``

Architecture, tied head, rotary embedding, special tokens, marks of a turn's end and chat template
are those of the model; width, depth and vocabulary are not. Tokens of whole phrases
(``\\boxed{1}``) let random answers be right now and then, so that there is something to learn from.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from coterie.agents.models.papers import CONFIGS
from miniatures.tokenizers import english

_DIGITS = "0123"
PHRASES = (
    *(f"{before}\\boxed{{{n}}}" for n in _DIGITS for before in ("", " ", "\n", "so ")),
    *(f"{before}Answer: {n}" for n in _DIGITS for before in ("\n", "\n\n", ".\n")),
    *(f" \\confidence{{0.{n}}}" for n in (1, 5, 9)),
    '<agent_calls>[{"expert_id": 1, "input_parameters": {"query": "1 + 1"}}]</agent_calls>',
    *("<think>", "</think>\n", "<final_answer>3</final_answer>"),
    '<strategy id="1">\n<approach>add</approach>\n<reasoning>1 + 2</reasoning>\n'
    "<strategy_id_outcome>\\boxed{3}</strategy_id_outcome>\n</strategy>\n",
)
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CHATML = (
    "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
_QWEN25 = (
    "{%- if messages[0]['role'] != 'system' %}{{- '<|im_start|>system\\nYou are Qwen, created by "
    "Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}{%- endif %}" + _CHATML
)
# Thinks unless told not to, and forgets what it thought in earlier turns.
_QWEN3 = (
    "{%- for m in messages %}{%- set text = m.content %}{%- if m.role == 'assistant' and not "
    "loop.last %}{%- set text = text.split('</think>')[-1].lstrip('\\n') %}{%- endif %}"
    "{{- '<|im_start|>' + m.role + '\\n' + text + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is "
    "defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
    "{%- endif %}"
)
_R1 = (
    "{{ bos_token }}{%- for m in messages %}{%- if m.role == 'user' %}"
    "{{- '<｜User｜>' + m.content }}"
    "{%- elif m.role == 'assistant' %}{{- '<｜Assistant｜>' + m.content.split('</think>')[-1] + "
    "'<｜end▁of▁sentence｜>' }}{%- else %}{{- m.content }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<｜Assistant｜><think>\\n' }}{%- endif %}"
)
_LLAMA3 = (
    "{{- bos_token }}{%- set day = strftime_now('%d %b %Y') if strftime_now is defined else "
    "'26 Jul 2024' %}{{- '<|start_header_id|>system<|end_header_id|>\\n\\nCutting "
    "Knowledge Date: December 2023\\nToday Date: ' + day + '\\n\\n<|eot_id|>' }}"
    "{%- for m in messages %}{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' }}"
    "{{- m.content | trim }}"
    "{{- '<|eot_id|>' }}"
    "{%- endfor %}{%- if add_generation_prompt %}"
    "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)
_PHI4 = (
    "{{ '<|system|>Your name is Phi, an AI math expert developed by Microsoft.<|end|>' }}"
    "{%- for m in messages %}{{- '<|' + m.role + '|>' + m.content + '<|end|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- else %}{{- eos_token }}{%- endif %}"
)
_MISTRAL = (
    "{{- bos_token }}{%- if messages[0]['role'] != 'system' %}{{- '[SYSTEM_PROMPT]# HOW YOU SHOULD "
    "THINK AND ANSWER\\n\\nFirst draft your thinking.[THINK]thoughts[/THINK]Then answer."
    "[/SYSTEM_PROMPT]' }}{%- endif %}{%- for m in messages %}{%- if m.role == 'user' %}"
    "{{- '[INST]' + m.content + '[/INST]' }}{%- elif m.role == 'assistant' %}"
    "{{- m.content + eos_token }}{%- elif m.role == 'system' %}"
    "{{- '[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]' }}{%- else %}"
    "{{- raise_exception('Only user, assistant and system roles are supported!') }}{%- endif %}"
    "{%- endfor %}"
)


@dataclass(frozen=True)
class Dialect:
    """How a family of models writes: special tokens, chat template, the class of its tokenizer."""

    kind: str
    template: str
    special: tuple[str, ...]
    eos: str
    pad: str
    ends: tuple[str, ...]
    """Marks that end a turn, by the generation settings."""
    bos: str | None = None
    """Put before every text, also where no template is."""


_IM = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN = {"special": _IM, "eos": _IM[2], "pad": _IM[0], "ends": (_IM[2], _IM[0])}
_DIALECTS: Mapping[str, Dialect] = {
    "Qwen/Qwen2.5": Dialect("Qwen2Tokenizer", _QWEN25, **_QWEN),
    "Qwen/Qwen3-4B": Dialect("Qwen2Tokenizer", _CHATML, **_QWEN),
    "Qwen/Qwen3-8B": Dialect("Qwen2Tokenizer", _QWEN3, **_QWEN),
    "Qwen/QwQ": Dialect("Qwen2Tokenizer", _CHATML, **_QWEN),
    "deepseek-ai/": Dialect(
        "LlamaTokenizerFast",
        _R1,
        ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
        eos="<｜end▁of▁sentence｜>",
        pad="<｜end▁of▁sentence｜>",
        ends=("<｜end▁of▁sentence｜>",),
        bos="<｜begin▁of▁sentence｜>",
    ),
    "meta-llama/": Dialect(
        "PreTrainedTokenizerFast",
        _LLAMA3,
        (
            *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
            *("<|eom_id|>", "<|eot_id|>", "<|finetune_right_pad_id|>"),
        ),
        eos="<|eot_id|>",
        pad="<|finetune_right_pad_id|>",
        ends=("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"),
        bos="<|begin_of_text|>",
    ),
    "microsoft/": Dialect(
        "GPT2TokenizerFast",
        _PHI4,
        ("<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
        eos="<|endoftext|>",
        pad="<|endoftext|>",
        ends=("<|end|>", "<|endoftext|>"),
    ),
    "mistralai/": Dialect(
        "PreTrainedTokenizerFast",
        _MISTRAL,
        (
            *("<unk>", "<s>", "</s>", "<pad>", "[INST]", "[/INST]"),
            *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]", "[IMG]"),
        ),
        eos="</s>",
        pad="<pad>",
        ends=("</s>",),
        bos="<s>",
    ),
}


def build(
    name: str,
    folder: Path,
    *,
    scale: float = 1e-4,
    vocabulary: int = 448,
    context: int | None = None,
    heads: int | None = None,
    phrases: Sequence[str] = PHRASES,
    seed: int = 0,
) -> Path:
    """Write a model of random weights and its tokenizer, as the hub has ``name``; give the folder.

    Args:
        name: hub id of a model in :data:`coterie.agents.models.papers.CONFIGS`.
        folder: where its files go.
        scale: its size, as a share of the real one's without the vocabulary.
        vocabulary: width of the logits; the tokenizer has fewer tokens, as the real ones have.
        context: longest context; by default the real one's.
        heads: dimensions of an attention head; by default as the width has it.
        phrases: texts that are one token each.
        seed: of the weights.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    dialect = next(spoken for prefix, spoken in _DIALECTS.items() if name.startswith(prefix))
    ids = _write_tokenizer(dialect, folder, vocabulary - 8, phrases)
    marks = {"eos_token_id": ids[dialect.ends[0]], "pad_token_id": ids[dialect.pad]}
    marks["bos_token_id"] = ids[dialect.bos or dialect.special[0]]
    own = {"vocab_size": vocabulary, **marks}
    own |= {} if context is None else {"max_position_embeddings": context}
    config = _shrunk(CONFIGS[name], scale, own, heads)
    plain = config.get_text_config() is config
    auto = AutoModelForCausalLM if plain else AutoModelForImageTextToText
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = auto.from_config(config)
    model.generation_config.update(**marks | {"eos_token_id": [ids[end] for end in dialect.ends]})
    model.generation_config.update(do_sample=True, temperature=0.6, top_p=0.95)
    model.save_pretrained(folder)
    return folder


def _shrunk(
    real: Mapping[str, Any], scale: float, given: Mapping[str, Any], head_dim: int | None
) -> Any:
    """The configuration with fewer and narrower layers: depth by a third of the scale's exponent,
    width by the rest; a head keeps what its rotary embedding needs."""
    from transformers import CONFIG_MAPPING

    own = {key: value for key, value in real.items() if key != "model_type"}
    if "text_config" in own:
        own["text_config"] = _shrunk(own["text_config"], scale, given, head_dim)
        own["vision_config"] = own["vision_config"] | {
            "num_hidden_layers": 1,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_attention_heads": 2,
            "head_dim": 16,
            "image_size": 28,
        }
        return CONFIG_MAPPING[real["model_type"]](**own)
    groups = own["num_attention_heads"] // own["num_key_value_heads"]
    kv = min(own["num_key_value_heads"], 2)
    heads = kv * min(groups, 4)
    width = own["hidden_size"] * scale ** (1 / 3)
    head_dim = head_dim or max(8, round(width / heads / 8) * 8)
    own |= {
        "num_hidden_layers": max(2, round(own["num_hidden_layers"] * scale ** (1 / 3))),
        "hidden_size": heads * head_dim,
        "intermediate_size": max(16, round(own["intermediate_size"] * scale ** (1 / 3))),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        **given,
    }
    if "head_dim" in own:
        own["head_dim"] = head_dim
    rope = dict(own["rope_parameters"])
    for factors in {"short_factor", "long_factor"} & set(rope):
        rope[factors] = rope[factors][: int(head_dim * rope["partial_rotary_factor"]) // 2]
    own["rope_parameters"] = rope
    return CONFIG_MAPPING[real["model_type"]](**own)


def _write_tokenizer(
    dialect: Dialect, folder: Path, size: int, phrases: Sequence[str]
) -> dict[str, int]:
    """A byte-level BPE of school English; gives the ids of its tokens."""
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(phrases) - len(dialect.special),
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    backend.train_from_iterator(english(), trainer)
    backend.add_special_tokens([AddedToken(mark, normalized=False) for mark in dialect.special])
    backend.add_tokens([AddedToken(phrase, normalized=False) for phrase in phrases])
    if dialect.bos is not None:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{dialect.bos} $A",
            special_tokens=[(dialect.bos, backend.token_to_id(dialect.bos))],
        )
    marks = {"bos_token": dialect.bos, "eos_token": dialect.eos, "pad_token": dialect.pad}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        chat_template=dialect.template,
        clean_up_tokenization_spaces=False,
        **{key: mark for key, mark in marks.items() if mark is not None},
    )
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8")) | {"tokenizer_class": dialect.kind}
    path.write_text(json.dumps(settings, indent=2), encoding="utf-8")
    return backend.get_vocab(with_added_tokens=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse and build."""
    parser = argparse.ArgumentParser(prog="python -m miniatures.shapes", description=__doc__)
    parser.add_argument("name", choices=CONFIGS, help="hub id of the model")
    parser.add_argument("folder", type=Path, help="where its files go")
    parser.add_argument(
        "--scale", type=float, default=1e-4, help="size, as a share of the real one"
    )
    parser.add_argument("--vocabulary", type=int, default=448, help="width of the logits")
    options = parser.parse_args(arguments)
    build(options.name, options.folder, scale=options.scale, vocabulary=options.vocabulary)


if __name__ == "__main__":
    main()
