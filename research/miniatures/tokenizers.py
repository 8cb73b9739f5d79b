"""Three kinds of tokenizers for the tiny roles; each gives back any text exactly.

byte-level-bpe  BPE over bytes
character-bpe   BPE over characters with bytes to fall back on
unigram         unigram pieces with bytes to fall back on

Text is first cut into pieces that tokens never cross, so that a digit, an operator or a tag is
always one token, and so that text which merely looks like a byte token (``<0x41>``) or like an end
mark cannot become one. (The end mark itself is a special token: encode foreign text with
``split_special_tokens=True``.)
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.resources import files

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from miniatures.recipe import Recipe, Spelling

CONTEXT = 4096
SIGNS = ("+", "-", "@", "#", "=")
DIGITS = tuple("0123456789")
_WORD = r" ?[A-Za-z]{1,16}"
_OTHER = r" ?[^\sA-Za-z]|\s"
_LETTERS = [chr(code) for code in range(32, 127)] + ["\n", "\t"]
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def build_tokenizer(recipe: Recipe) -> PreTrainedTokenizerFast:
    """The tokenizer of a role: a pure function of its recipe and of this package's text."""
    end, pad = f"<|{recipe.role}:end|>", f"<|{recipe.role}:pad|>"
    tokenizer = _BUILDERS[recipe.spelling.kind](recipe.spelling, end, pad)
    special = [AddedToken(mark, special=True, normalized=False) for mark in (end, pad)]
    tokenizer.add_special_tokens(special)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=end,
        pad_token=pad,
        padding_side="left",
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def english() -> list[str]:
    """A few sentences of school English, from which common letter pairs and words are learned."""
    return files("miniatures").joinpath("english.txt").read_text(encoding="utf-8").splitlines()


def _symbols(spelling: Spelling) -> list[str]:
    """Everything that must be one token: phrases as they stand, marks also with a space before."""
    marks = [*spelling.tags, *SIGNS, *DIGITS]
    return [*marks, *(f" {mark}" for mark in marks), *spelling.phrases]


def _cutter(spelling: Spelling) -> pre_tokenizers.Split:
    """Cuts text into phrases, tags, words and single other characters; drops nothing."""
    escape = str.maketrans({"\n": r"\n"} | {mark: f"\\{mark}" for mark in r"\{}().?*+[]|^$"})
    fixed = [piece.translate(escape) for piece in sorted(spelling.phrases, key=len, reverse=True)]
    fixed += [f" ?{tag.translate(escape)}" for tag in spelling.tags]
    return pre_tokenizers.Split(Regex("|".join([*fixed, _WORD, _OTHER])), behavior="isolated")


def _byte_level_bpe(spelling: Spelling, end: str, pad: str) -> Tokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.Sequence([_cutter(spelling), byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        show_progress=False,
        special_tokens=[end, pad],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    learned.train_from_iterator(english(), trainer)
    spelled = [byte_level.pre_tokenize_str(mark)[0][0] for mark in _symbols(spelling)]
    tokenizer = Tokenizer(_with_whole_pieces(learned, spelled, byte_fallback=False))
    tokenizer.pre_tokenizer = learned.pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _character_bpe(spelling: Spelling, end: str, pad: str) -> Tokenizer:
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = _cutter(spelling)
    trainer = trainers.BpeTrainer(
        vocab_size=2 + len(_BYTES) + len(_LETTERS) + 60,
        show_progress=False,
        special_tokens=[end, pad, *_BYTES],
        initial_alphabet=_LETTERS,
    )
    learned.train_from_iterator(english(), trainer)
    tokenizer = Tokenizer(_with_whole_pieces(learned, _symbols(spelling), byte_fallback=True))
    tokenizer.pre_tokenizer = learned.pre_tokenizer
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def _unigram(spelling: Spelling, end: str, pad: str) -> Tokenizer:
    cutter = _cutter(spelling)
    pieces = Counter[str]()
    for line in english():
        for word, _ in cutter.pre_tokenize_str(line):
            pieces.update(_substrings(word, longest=7))
    ranked = sorted(pieces, key=lambda piece: (-pieces[piece] * (len(piece) - 1), piece))
    common = {piece: math.log(pieces[piece] / pieces.total()) for piece in ranked[:56]}
    # A character costs more than any learned piece, a byte more than any character; specials
    # and bytes lie where no text can reach them.
    scored = [(end, 0.0), (pad, 0.0), *((byte, -20.0) for byte in _BYTES)]
    scored += [(letter, -12.0) for letter in _LETTERS]
    scored += common.items()
    known = {piece for piece, _ in scored}
    scored += [(mark, -1.0) for mark in _symbols(spelling) if mark not in known]
    # The model demands an unknown id; with every byte in the vocabulary it is never used.
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=1, byte_fallback=True))
    tokenizer.pre_tokenizer = cutter
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def _substrings(word: str, longest: int) -> Iterator[str]:
    for start in range(len(word)):
        for end in range(start + 2, min(start + longest, len(word)) + 1):
            yield word[start:end]


def _with_whole_pieces(
    learned: Tokenizer, spelled: list[str], *, byte_fallback: bool
) -> models.BPE:
    """The learned merges, and beside them pieces that are taken whole (``ignore_merges``)."""
    state = json.loads(learned.to_str())["model"]
    vocabulary = dict(state["vocab"])
    for piece in spelled:
        vocabulary.setdefault(piece, len(vocabulary))
    merges = [(left, right) for left, right in state["merges"]]
    return models.BPE(vocabulary, merges, ignore_merges=True, byte_fallback=byte_fallback)


_BUILDERS: dict[str, Callable[[Spelling, str, str], Tokenizer]] = {
    "byte-level-bpe": _byte_level_bpe,
    "character-bpe": _character_bpe,
    "unigram": _unigram,
}
