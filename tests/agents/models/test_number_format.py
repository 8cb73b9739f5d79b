"""What a model computes in where nobody says."""

from pathlib import Path

import pytest

from coterie.agents.models import number_format
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
def flags(tmp_path: Path, monkeypatch):
    """A processor with these flags; None: a system that does not tell."""

    def of(names: str | None) -> None:
        cpuinfo = tmp_path / "cpuinfo"
        if names is not None:
            cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {names} avx\n\nprocessor\t: 1\n")
        monkeypatch.setattr(number_format, "_CPUINFO", cpuinfo)
        number_format._flags.cache_clear()

    yield of
    number_format._flags.cache_clear()


@pytest.mark.parametrize(
    ("names", "size", "wanted"),
    [
        ("avx512_bf16", TINY_BYTES + 1, ("bfloat16", "the processor has avx512_bf16")),
        ("amx_bf16 avx512_bf16", 1 << 30, ("bfloat16", "the processor has amx_bf16")),
        ("avx512_bf16", TINY_BYTES, ("float32", "at most 8 MiB of weights")),
        ("avx512f", 1 << 30, ("float32", "the processor has no amx_bf16 or avx512_bf16")),
        (None, 1 << 30, ("float32", "the processor has no amx_bf16 or avx512_bf16")),
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
    wanted = NumberFormat("bfloat16", "the processor has avx512_bf16; 4 bits a weight")
    assert number_format_of(model(TINY_BYTES + 1, dtype="nf4")) == wanted
