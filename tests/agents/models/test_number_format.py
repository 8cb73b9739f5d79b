"""What a model computes in where nobody says."""

from pathlib import Path

import pytest

from coterie.agents.models import instructions, number_format
from coterie.agents.models.number_format import NumberFormat, number_format_of
from coterie.agents.models.spec import TINY_BYTES, ModelSpec


@pytest.fixture
def model(tmp_path: Path):
    """A folder with so many bytes of weights in two files."""

    def of(size: int, **settings) -> ModelSpec:
        for name, share in (("a", size // 2), ("b", size - size // 2)):
            with (tmp_path / f"{name}.safetensors").open("wb") as file:
                file.truncate(share)
        return ModelSpec(str(tmp_path), **{"device": "cpu", **settings})

    return of


@pytest.fixture
def flags(monkeypatch):
    """A processor with these flags."""

    def of(names: str) -> None:
        monkeypatch.setattr(number_format, "processor_flags", lambda: {*names.split()})

    return of


@pytest.mark.parametrize(
    ("names", "size", "wanted"),
    [
        ("avx512_bf16", TINY_BYTES + 1, ("bfloat16", "the processor has avx512_bf16")),
        ("amx_bf16 avx512_bf16", 1 << 30, ("bfloat16", "the processor has amx_bf16")),
        ("avx512_bf16", TINY_BYTES, ("float32", "at most 8 MiB of weights")),
        ("avx512f", 1 << 30, ("float32", "the processor has no amx_bf16 or avx512_bf16")),
    ],
)
def test_processor_and_size_decide(flags, model, names, size, wanted) -> None:
    flags(names)
    assert number_format_of(model(size)) == NumberFormat(*wanted)


def test_what_is_asked_for_holds(flags, model) -> None:
    flags("avx512_bf16")
    assert number_format_of(model(1 << 30, dtype="float32")).name == "float32"
    assert number_format_of(ModelSpec("tiny:alice", device="cpu")).name == "float32"
    assert number_format_of(ModelSpec("tiny:alice", device="cuda:0")).name == "bfloat16"
    assert number_format_of(ModelSpec("an/id", device="cpu")).name == "bfloat16"


def test_a_quantized_model_computes_as_another(flags, model) -> None:
    flags("avx512_bf16")
    wanted = NumberFormat("bfloat16", "the processor has avx512_bf16; 4 bits a weight", "nf4")
    assert number_format_of(model(TINY_BYTES + 1, dtype="nf4")) == wanted


WHY = "the processor has no amx_bf16 or avx512_bf16"


@pytest.mark.parametrize(
    ("names", "quantized", "full", "limit", "wanted"),
    [
        ("avx512_vnni", True, False, "ALL", f"{WHY} but avx512_vnni: 8 bits a frozen weight"),
        ("avx_vnni", True, False, None, f"{WHY} but avx_vnni: 8 bits a frozen weight"),
        ("avx512_vnni", True, True, "ALL", WHY),
        ("avx512_vnni", False, False, "ALL", WHY),
        ("avx512f", True, False, "ALL", WHY),
        ("avx512_vnni", True, False, "AVX2", WHY),
    ],
)
def test_a_quantized_file_is_held_in_8_bits_where_that_is_fast(
    flags, tmp_path, monkeypatch, names, quantized, full, limit, wanted
) -> None:
    flags(names)
    monkeypatch.setattr(number_format, "has_tiny_files", lambda spec: False)
    monkeypatch.setattr(number_format, "is_quantized", lambda name: quantized)
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA")
    if limit is not None:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    file = tmp_path / "model.gguf"
    file.touch()
    codes = "int8" if "8 bits" in wanted else None
    chosen = number_format_of(ModelSpec(str(file), device="cpu"), trained=full)
    assert chosen == NumberFormat("float32", wanted, codes)
    flags(f"{names} amx_bf16")
    assert number_format_of(ModelSpec(str(file), device="cpu")).name == "bfloat16"


def test_8_bits_that_are_asked_for_need_no_flag(flags, model) -> None:
    flags("avx512_bf16")
    chosen = number_format_of(model(1 << 30, dtype="int8"))
    assert (chosen.name, chosen.codes) == ("float32", "int8")


def test_a_limit_that_is_ours_is_none(monkeypatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert instructions.are_limited()
    monkeypatch.setenv("COTERIE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
    assert not instructions.are_limited()
