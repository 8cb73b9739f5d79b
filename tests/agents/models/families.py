"""Chat templates as families of models have them, each with the tokens that it speaks of."""

from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

TEXT = [
    "Question: 7 + 8 - 3 = the answer is 12, hello world",
    "héllo → wörld",
    "user assistant system",
] * 4


def byte_level(template: str | None, special: list[str], eos: str, **more: Any) -> Any:
    """A small tokenizer of bytes."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=340,
        show_progress=False,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    backend.train_from_iterator(TEXT, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=eos, **more)
    tokenizer.chat_template = template
    return tokenizer


@dataclass(frozen=True)
class Family:
    """How a family writes a conversation."""

    template: str
    special: tuple[str, ...]
    eos: str
    bos: str | None = None
    mark: str = ""
    """What stands behind an answer that a message of the user follows; empty without a mark."""
    space: str = ""
    """White space that the template puts between an answer and its mark."""
    lead: str = ""
    """White space that a model samples before its answer, and the template writes."""
    names_user: bool = False
    """Whether the mark belongs to the next message, and closes no answer."""
    ends: tuple[str, ...] = ()
    """Further tokens that end a turn, by the generation settings."""
    words: bool = False
    """Whether the tokenizer puts a space before each text, as SentencePiece does."""

    def tokenizer(self) -> Any:
        """A small tokenizer with the family's control tokens and template."""
        names = ("<unk>", *self.special, *self.ends, self.eos, self.bos)
        special = [name for name in dict.fromkeys(names) if name]
        if not self.words:
            return byte_level(self.template, special, self.eos, bos_token=self.bos)
        backend = Tokenizer(models.BPE(unk_token="<unk>"))
        backend.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
        read = [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        backend.decoder = decoders.Sequence(read)
        backend.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
        trainer = BpeTrainer(
            vocab_size=160,
            show_progress=False,
            special_tokens=special,
            initial_alphabet=["▁", "\n", *map(chr, range(33, 127))],
        )
        backend.train_from_iterator(TEXT, trainer)
        tokenizer: Any = PreTrainedTokenizerFast(
            tokenizer_object=backend, eos_token=self.eos, bos_token=self.bos
        )
        tokenizer.chat_template = self.template
        return tokenizer


def _turns(user: str, assistant: str, *, before: str = "", begin: str = "") -> str:
    """A template of two speakers."""
    return (
        f"{before}{{% for m in messages %}}{{% if m['role'] == 'user' %}}{user}"
        f"{{% elif m['role'] == 'assistant' %}}{assistant}{{% endif %}}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}{begin}{{% endif %}}"
    )


_LOOP = "{% for m in messages %}"
_CHATML = (
    _LOOP + "{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_IM = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_QWEN3 = (
    _LOOP + "{%- set text = m.content %}{%- set thought = '' %}{%- if m.role == 'assistant' %}"
    "{%- if m.reasoning_content is string %}{%- set thought = m.reasoning_content %}"
    "{%- elif '</think>' in text %}"
    "{%- set thought = text.split('</think>')[0].split('<think>')[-1] %}"
    "{%- set text = text.split('</think>')[-1].lstrip('\n') %}{%- endif %}{%- endif %}"
    "{{- '<|im_start|>' + m.role + '\n' }}{%- if thought and loop.last %}"
    "{{- '<think>\n' + thought.strip('\n') + '\n</think>\n\n' }}{%- endif %}"
    "{{- text + '<|im_end|>\n' }}{%- endfor %}{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\n' }}OPENED{%- endif %}"
)
_LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}"
    "{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
    "{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
_LLAMA3 = (
    _LOOP + "{% set content = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + "
    "m['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
    "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
_DEEPSEEK_CODER = "{{bos_token}}{{'You are an AI programming assistant.\n'}}" + _turns(
    "{{ '### Instruction:\n' + m['content'] + '\n' }}",
    "{{ '### Response:\n' + m['content'] + '\n<|EOT|>\n' }}",
    begin="{{ '### Response:' }}",
)
_HARMONY = (
    "{{- '<|start|>system<|message|>You are ChatGPT.<|end|>' }}"
    + _LOOP
    + "{%- if m.role == 'assistant' %}{%- if loop.last and not add_generation_prompt %}"
    "{%- if 'thinking' in m %}"
    "{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{%- endif %}"
    "{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|return|>' }}"
    "{%- else %}{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}"
    "{%- endif %}{%- else %}{{- '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}"
    "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}"
)
_HEADERS = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
_INST = ("<s>", "</s>", "[INST]", "[/INST]")

FAMILIES = {
    "qwen2.5": Family(
        "{%- if messages[0]['role'] != 'system' %}"
        "{{- '<|im_start|>system\nYou are Qwen.<|im_end|>\n' }}{%- endif %}" + _CHATML,
        *(_IM, "<|im_end|>"),
        mark="<|im_end|>",
        ends=("<|endoftext|>",),
    ),
    "qwen3": Family(
        _QWEN3.replace("OPENED", ""),
        *(_IM, "<|im_end|>"),
        mark="<|im_end|>",
        ends=("<|endoftext|>",),
    ),
    "yi": Family(_CHATML, _IM, "<|endoftext|>", mark="<|im_end|>"),
    "spaced-chatml": Family(
        _CHATML.replace("m['content'] + ", "m['content'] + ' ' + "),
        *(("<|im_start|>", "<|im_end|>"), "</s>"),
        mark="<|im_end|>",
        space=" ",
    ),
    "unclosed-chatml": Family(
        _CHATML.replace("'<|im_end|>' + ", ""),
        *(_IM, "<|endoftext|>"),
        mark="<|im_start|>",
        space="\n",
        names_user=True,
    ),
    "llama2": Family(
        _LLAMA2, ("<s>",), "</s>", bos="<s>", mark="</s>", space=" ", lead=" ", words=True
    ),
    "llama3": Family(
        _LLAMA3,
        *(_HEADERS, "<|eot_id|>"),
        bos="<|begin_of_text|>",
        mark="<|eot_id|>",
        ends=("<|end_of_text|>", "<|eom_id|>"),
    ),
    "deepseek-coder": Family(
        _DEEPSEEK_CODER,
        *((), "<|EOT|>"),
        bos="<bos>",
        mark="<|EOT|>",
        space="\n",
        lead="\n",
    ),
    "deepseek-v2": Family(
        "{{ bos_token }}"
        + _turns(
            "{{ 'User: ' + m['content'] + '\n\n' }}",
            "{{ 'Assistant: ' + m['content'] + eos_token }}",
            begin="{{ 'Assistant:' }}",
        ),
        *((), "<｜end▁of▁sentence｜>"),
        bos="<｜begin▁of▁sentence｜>",
        mark="<｜end▁of▁sentence｜>",
        lead=" ",
    ),
    "glm4": Family(
        "[gMASK]<sop>" + _LOOP + "<|{{ m['role'] }}|>\n{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
        ("[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>", "<|observation|>"),
        "<|endoftext|>",
        mark="<|user|>",
        names_user=True,
        ends=("<|observation|>",),
    ),
    "mistral-v1": Family(
        _turns(
            "{{ ' [INST] ' + m['content'] + ' [/INST]' }}",
            "{{ ' ' + m['content'] + eos_token}}",
            before="{{ bos_token }}",
        ),
        *(("<s>",), "</s>"),
        bos="<s>",
        mark="</s>",
        lead=" ",
        words=True,
    ),
    "mistral-v7": Family(
        _turns(
            "{{ '[INST]' + m['content'] + '[/INST]' }}",
            "{{ m['content'] + eos_token }}",
            before="{{ bos_token }}",
        ),
        *(_INST, "</s>"),
        bos="<s>",
        mark="</s>",
    ),
    "gemma": Family(
        "{{ bos_token }}"
        + _LOOP
        + "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
        "{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
        *(("<start_of_turn>", "<end_of_turn>"), "<eos>"),
        bos="<bos>",
        mark="<end_of_turn>",
    ),
    "phi3": Family(
        _LOOP + "{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
        *(("<|user|>", "<|assistant|>", "<|end|>"), "<|endoftext|>"),
        mark="<|end|>",
    ),
    "zephyr": Family(
        _LOOP + "\n{{ '<|' + m['role'] + '|>\n' + m['content'] + eos_token }}"
        "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>\n' }}{% endif %}"
        "\n{% endfor %}",
        *((), "</s>"),
        bos="<s>",
        mark="</s>",
        words=True,
    ),
    "olmo2": Family(
        "{{ bos_token }}"
        + _LOOP
        + "{% if m['role'] == 'user' %}{{ '<|user|>\n' + m['content'] + '\n' }}"
        "{% elif not loop.last %}{{ '<|assistant|>\n' + m['content'] + eos_token + '\n' }}"
        "{% else %}{{ '<|assistant|>\n' + m['content'] + eos_token }}{% endif %}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
        "{% endfor %}",
        *((), "<|endoftext|>"),
        bos="<|endoftext|>",
        mark="<|endoftext|>",
        ends=("<|pad|>",),
    ),
    "falcon": Family(
        _turns(
            "{{ 'User: ' + m['content'].strip() + '\n' }}",
            "{{ 'Assistant: ' + m['content'].strip() + '\n' }}",
            begin="{{ 'Assistant:' }}",
        ),
        *((), "<|endoftext|>"),
        lead=" ",
    ),
    "minicpm": Family(
        _turns("{{ '<用户>' + m['content'].strip() + '<AI>' }}", "{{ m['content'].strip() }}"),
        *((), "</s>"),
        bos="<s>",
    ),
    "baichuan": Family(
        _turns(
            "{{ '<reserved_106>' + m['content'] }}",
            "{{ '<reserved_107>' + m['content'] }}",
            begin="{{ '<reserved_107>' }}",
        ),
        *(("<reserved_106>", "<reserved_107>"), "</s>"),
        mark="<reserved_106>",
        names_user=True,
    ),
    "gpt-oss": Family(
        _HARMONY,
        ("<|start|>", "<|message|>", "<|channel|>", "<|end|>"),
        "<|return|>",
        mark="<|end|>",
        lead="<|channel|>final<|message|>",
        ends=("<|call|>",),
    ),
    "worded-end": Family(
        _turns(
            "{{ 'Q: ' + m['content'] + '\nA:' }}",
            "{{ m['content'] + '\n' + eos_token + '\n\n' }}",
        ),
        *((), "<|end|>"),
        mark="<|end|>",
        space="\n",
    ),
}

OPENS = {
    "r1": (
        "{{ bos_token }}"
        + _turns(
            "{{ '<｜User｜>' + m['content'] }}",
            "{{ '<｜Assistant｜>' + m['content'].split('</think>')[-1] + "
            "'<｜end▁of▁sentence｜>' }}",
            begin="{{ '<｜Assistant｜><think>\n' }}",
        ),
        "<think>\n",
    ),
    "qwq": (_CHATML.replace("assistant\n", "assistant\n<think>\n"), "<think>\n"),
    "qwen3-thinking": (_QWEN3.replace("OPENED", "{{- '<think>\n' }}"), "<think>\n"),
    "magistral": (_CHATML.replace("assistant\n", "assistant\n[THINK]"), "[THINK]"),
    "seed": (_CHATML.replace("assistant\n", "assistant\n<seed:think>"), "<seed:think>"),
    "exaone-deep": (_CHATML.replace("assistant\n", "assistant\n<thought>\n"), "<thought>\n"),
    "reasoning": (_CHATML.replace("assistant\n", "assistant\n<reasoning>\n"), "<reasoning>\n"),
    "begun": (_CHATML.replace("assistant\n", "assistant\n<think>\nOkay,"), "<think>\nOkay,"),
    "thinking-token": (_CHATML.replace("assistant\n", "assistant\n<|think|>"), "<|think|>"),
    "harmony": (
        _HARMONY.replace(
            "'<|start|>assistant' }", "'<|start|>assistant<|channel|>analysis<|message|>' }"
        ),
        "<|channel|>analysis<|message|>",
    ),
}
"""Templates that open a thought, and what they write of it."""

OPENS_NONE = {
    "empty thought": _QWEN3.replace("OPENED", "{{- '<think>\n\n</think>\n\n' }}"),
    "told how to think": _CHATML.replace(
        "m['content'] + ", "m['content'] + ' Think in <think> tags.' + "
    ),
    "told at the end": _CHATML.replace(
        "m['content'] + ", "m['content'] + ' Begin with <think>' + "
    ),
    "plain": _CHATML,
}
