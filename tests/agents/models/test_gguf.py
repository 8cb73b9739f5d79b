"""GGUF files: the same weights and the same tokens as their makers meant, and bad files told."""

import itertools
import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from coterie.agents.models.gguf import converted, is_quantized
from coterie.agents.models.gguf_tokenizer_repair import check_tokenizer
from coterie.agents.models.loading import load_team
from coterie.agents.models.locate import check_model, local_folder
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.datatypes import UserError

TEXTS = ["the cat 12 at\n\n34  in", " 1. Then 1998,  45\n\n\n6", "don't  on", "é∑ 7\t8", ""]


@pytest.mark.parametrize("kind", ["llama", "gemma"])
def test_weights_are_those_that_were_written(small_gguf, load_role, kind: str) -> None:
    path, model = getattr(small_gguf, kind)()
    got = load_role(path).handle.causal_lm.state_dict()
    for name, weight in model.state_dict().items():
        # A norm of Gemma is stored with 1 added to it.
        torch.testing.assert_close(got[name], weight, rtol=0, atol=2e-7, msg=name)


def test_blocks_are_dequantised(small_gguf) -> None:
    """Q8_0: 32 numbers share a scale of 16 bits, their largest / 127, and are whole multiples of
    it. The product is rounded to bfloat16; a norm, which the file has in float32, is not."""
    path, model = small_gguf.gemma(quantized=True)
    got = AutoModelForCausalLM.from_pretrained(converted(path), dtype=torch.float32).state_dict()
    stored = load_file(converted(path) / "model.safetensors")
    for name, weight in model.state_dict().items():
        if weight.ndim == 1:
            torch.testing.assert_close(got[name], weight, rtol=0, atol=2e-7, msg=name)
            assert stored[name].dtype == torch.float32
            continue
        blocks = weight.reshape(-1, 32)
        exact = (blocks.abs().amax(1, keepdim=True) / 127).half().float()
        multiples = (blocks / (blocks.abs().amax(1, keepdim=True) / 127)).round()
        torch.testing.assert_close(
            got[name], (exact * multiples).bfloat16().float().view_as(weight), rtol=0, atol=0
        )
        if name in stored:  # the head is tied
            assert stored[name].dtype == torch.bfloat16


@pytest.mark.parametrize("rounded", [True, False])
def test_plain_numbers_lose_nothing(small_gguf, rounded: bool) -> None:
    path, model = small_gguf.llama(rounded=rounded)
    stored = load_file(converted(path) / "model.safetensors")
    assert len(stored) == 20  # nine weights of each of two blocks, embedding and last norm
    for name, weight in stored.items():
        short = rounded and weight.ndim == 2
        assert weight.dtype == (torch.bfloat16 if short else torch.float32), name
        assert torch.equal(weight.float(), model.state_dict()[name]), name


def cut_by_hand(text: str) -> list[str]:
    """SmolLM's rule in llama.cpp: single digits, and what is between them by GPT-2's pattern."""
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?[^\s\w]+|\s+(?!\S)|\s+"
    pieces = re.split(r"(\d)", text)
    return [m for piece in pieces for m in (re.findall(r"\d", piece) or re.findall(pattern, piece))]


def merged_by_hand(piece: str, rank: dict[tuple[str, str], int], letters: dict[int, str]) -> list:
    parts = [letters[byte] for byte in piece.encode()]
    while len(parts) > 1:
        pairs = list(itertools.pairwise(parts))
        best = min(pairs, key=lambda pair: rank.get(pair, 10**9))
        if best not in rank:
            break
        at = pairs.index(best)
        parts[at : at + 2] = ["".join(best)]
    return parts


def test_text_is_cut_as_the_file_says(small_gguf) -> None:
    path, _ = small_gguf.llama()
    tokenizer = AutoTokenizer.from_pretrained(converted(path))

    stored = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    rank = {tuple(pair): place for place, pair in enumerate(stored)}
    for text in TEXTS:
        expected = [
            token
            for piece in cut_by_hand(text)
            for token in merged_by_hand(piece, rank, bytes_to_unicode())
        ]
        assert tokenizer.tokenize(text) == expected
    # GPT-2's rule alone, which transformers takes for a name it does not know, parts the break of
    # a line that stands before a number.
    assert tokenizer.tokenize("12\n\n34") == ["1", "2", "ĊĊ", "3", "4"]


@pytest.mark.parametrize(
    ("says", "begins"),
    [({}, True), ({"tokenizer.ggml.add_bos_token": False}, False)],
    ids=["asks", "does not"],
)
def test_a_start_mark_where_the_file_asks_for_one(
    small_gguf, load_role, tmp_path, says, begins
) -> None:
    role = load_role(small_gguf.gemma(**says)[0])
    front = [2] if begins else []
    for text in TEXTS[:3]:
        assert role.codec.open(text)[: len(front)] == front
        assert role.codec.open(text) == role.tokenizer(text).input_ids
        assert role.codec.decode(role.codec.open(text)[len(front) :]) == text
    # What is saved says so, too.
    role.tokenizer.save_pretrained(tmp_path / "saved")
    again = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert again("cat").input_ids == role.tokenizer("cat").input_ids


@pytest.mark.parametrize(("pre", "begins"), [("llama-bpe", True), ("smollm", False)])
def test_bytes_begin_as_llama_cpp_begins_them(small_gguf, pre: str, begins: bool) -> None:
    path, _ = small_gguf.llama(pre=pre)
    tokenizer = AutoTokenizer.from_pretrained(converted(path))
    assert (tokenizer("the").input_ids[0] == 1) is begins
    assert tokenizer.backend_tokenizer.model.ignore_merges is begins


def test_roles_of_one_file_share_a_base_and_export_plain_checkpoints(
    small_gguf, load_role, tmp_path
) -> None:
    path, _ = small_gguf.llama(
        **{"tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}
    )
    lora = ModelSpec(str(path), device="cpu", lora=LoraSpec(rank=2))
    team = load_team({"alice": lora, "bob": lora}, {"alice", "bob"})
    assert team["alice"].handle.module is team["bob"].handle.module
    full = load_role(path)
    full.handle.save(tmp_path / "full")
    full.tokenizer.save_pretrained(tmp_path / "full")
    assert "quantization_config" not in (tmp_path / "full" / "config.json").read_text()
    again, tokenizer = (
        auto.from_pretrained(tmp_path / "full") for auto in (AutoModelForCausalLM, AutoTokenizer)
    )
    assert tokenizer.chat_template.startswith("{% for m")
    for name, weight in full.handle.causal_lm.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], weight, rtol=0, atol=0)


def test_a_file_is_converted_once(small_gguf, capsys) -> None:
    path, _ = small_gguf.llama()
    folder = converted(path)
    assert "converting it, once" in capsys.readouterr().err
    written = (folder / "model.safetensors").stat().st_mtime_ns
    shutil.copy(path, path.with_name("copy.gguf"))
    assert local_folder(ModelSpec(str(path.with_name("copy.gguf")))) == folder
    assert capsys.readouterr().err == ""
    assert (folder / "model.safetensors").stat().st_mtime_ns == written


def test_what_a_killed_process_left_is_not_taken(small_gguf) -> None:
    path, _ = small_gguf.llama()
    folder = converted(path)
    draft = folder.with_name(folder.name + ".part")
    folder.rename(draft)
    (draft / "model.safetensors").write_bytes(b"half")
    again = converted(path)
    assert again == folder
    assert not draft.exists()
    AutoModelForCausalLM.from_pretrained(again)


def test_two_processes_at_once_write_one_folder(small_gguf) -> None:
    path, _ = small_gguf.llama()
    with ProcessPoolExecutor(2) as pool:
        folders = list(pool.map(converted, [path, path]))
    assert folders[0] == folders[1]
    AutoModelForCausalLM.from_pretrained(folders[0])


def test_neighbours_of_a_file_are_not_read(small_gguf) -> None:
    path, model = small_gguf.llama()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        path.with_name(name).write_text("{}")
    got = AutoModelForCausalLM.from_pretrained(converted(path)).state_dict()
    torch.testing.assert_close(got["model.norm.weight"], model.state_dict()["model.norm.weight"])


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        (lambda whole: whole[: len(whole) * 9 // 10], "is cut short: .* fetch the file again"),
        (lambda whole: whole[: len(whole) // 200], "is damaged or cut short: its header"),
        (lambda _: b"", "is not a GGUF file"),
        (lambda _: b"PK\x03\x04 a wheel", "is not a GGUF file"),
        # The length of the first key.
        (
            lambda whole: whole[:24] + b"\xff" * 8 + whole[32:],
            "is damaged or cut short: its header",
        ),
    ],
    ids=["cut", "header", "empty", "foreign", "scribbled"],
)
def test_damage_is_reported(small_gguf, damaged: Callable[[bytes], bytes], sentence: str) -> None:
    path, _ = small_gguf.llama()
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.raises(UserError, match=sentence):
        check_model(ModelSpec(str(path)))


def test_whatever_the_header_holds_is_survived(small_gguf) -> None:
    path, _ = small_gguf.llama()
    whole, rng = path.read_bytes(), np.random.default_rng(4)
    for _ in range(300):
        content = bytearray(whole)
        for place in rng.integers(0, 6000, size=3):
            content[place] = rng.integers(0, 256)
        path.write_bytes(content)
        with suppress(UserError):
            check_model(ModelSpec(str(path)))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"pre": "mystery"}, "has an unknown pre-tokenizer 'mystery'"),
        ({"general.type": "adapter"}, "holds 'adapter'; what can be read"),
        ({"llama.rope.scaling.type": "yarn"}, "has a scaled rotary embedding"),
        ({"split.count": 3}, "is one of 3 parts; join them"),
    ],
    ids=["cut", "adapter", "rope", "split"],
)
def test_what_would_be_read_wrongly_is_refused(small_gguf, more, sentence: str) -> None:
    path, _ = small_gguf.llama(**more)
    with pytest.raises(UserError, match=sentence):
        check_model(ModelSpec(str(path)))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"tokenizer.ggml.model": None}, "holds no tokenizer"),
        ({"tokenizer.ggml.model": "bert"}, "has a tokenizer of the kind 'bert', not llama or gpt2"),
        ({"tokenizer.ggml.add_space_prefix": False}, "puts no space before its texts"),
    ],
)
def test_tokenizers_that_would_be_read_wrongly_are_refused(more, sentence: str) -> None:
    metadata = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": 5}
    check_tokenizer(Path("a.gguf"), metadata)
    with pytest.raises(UserError, match=f"^a.gguf {sentence}"):
        check_tokenizer(Path("a.gguf"), metadata | more)


def test_weights_of_an_unknown_type_are_refused(small_gguf, monkeypatch) -> None:
    path, _ = small_gguf.llama()
    monkeypatch.setattr("gguf.GGML_QUANT_SIZES", {})
    with pytest.raises(UserError, match=r"llama.gguf: token_embd.weight is of an unknown type"):
        check_model(ModelSpec(str(path)))


def test_without_the_extra_the_command_is_named(small_gguf, monkeypatch) -> None:
    path, _ = small_gguf.llama()
    monkeypatch.setattr("coterie.agents.models.gguf.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install -e "\.\[gguf\]"'):
        check_model(ModelSpec(str(path)))


def test_a_full_disk_is_reported(small_gguf, monkeypatch) -> None:
    path, _ = small_gguf.llama()

    def full(*_) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("coterie.agents.models.gguf_convert.convert", full)
    with pytest.raises(UserError, match=r"No space left on device.*XDG_CACHE_HOME"):
        converted(path)


@pytest.mark.parametrize("quantized", [True, False])
def test_the_header_says_whether_weights_are_rounded(small_gguf, quantized: bool) -> None:
    assert is_quantized(str(small_gguf.gemma(quantized=quantized)[0])) == quantized
