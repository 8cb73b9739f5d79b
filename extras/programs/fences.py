"""Finds the program of a response: cuts it at its fences, and chooses the block that counts.

Everything here is linear in the length of the response: nothing is parsed before a guarded process
has it.
"""

import re
from dataclasses import dataclass

from coterie.extras.programs.assemble import defines
from coterie.extras.programs.sandbox import Program

_MOST = 1 << 18
"""Maximum number of characters of all blocks; a longer response gives the solution's block only."""
_MARGIN = re.compile(r"(?:[ \t>]|[-*+](?=[ \t])|\d{1,3}[.)](?=[ \t]))*+")
_MARK = re.compile(r"(?P<mark>`{3,}+|~{3,}+)(?P<rest>.*)")
_LATE = re.compile(r"(?<!`)(?P<mark>`{3,}+)[ \t]?\w{0,20}$")
_CODE = re.compile(
    r"[ \t]*(?:\{?\.?(?:python|py)[\d.]*\}?[ \t]+)?"
    r"(?P<code>(?:async|def|class|import|from)[ \t].*|@\w.*|\w+[ \t]*=[ \t]*lambda\b.*)",
    re.IGNORECASE,
)
_OPENS = re.compile(r"[ \t]*+(?:<(?:answer|code|python|solution)>|\[(?:PYTHON|BEGIN)\])")
_CLOSES = re.compile(r"(?:</(?:answer|code|python|solution)>|\[/PYTHON\]|\[DONE\])$")
_RETURNS = re.compile(r"^[ \t]*(?:return|yield)\b", re.MULTILINE)
_BEGINS = re.compile(r"(?:for|if|while|with|try|import|from)\b|[\w, ]+[-+*/]?=")
_DEFINITION = re.compile(r"^(?:async[ \t]|def[ \t]|class[ \t]|@)", re.MULTILINE)
_END = re.compile(r"(?:<\|\w{0,30}\|?>?|<｜[\w▁]{0,30}｜?>?|</s>|<eos>|<end_of_turn>)\Z")
_MOST_MARKS = 16
_QUOTED = re.compile(r"^[ \t]*+>[ \t]?")


@dataclass
class _Block:
    lines: list[str]
    fenced: bool
    closed: bool = False

    @property
    def text(self) -> str:
        lines = self.lines
        if any(lines) and all(_QUOTED.match(line) for line in lines if line.strip()):
            lines = [_QUOTED.sub("", line, count=1) for line in lines]
        return "\n".join(lines)


def program_in(text: str, entry: str, prompt: str) -> Program | None:
    """Find the program of a response; None if there is none.

    The last block that defines ``entry`` holds the solution. If there is none, it is the indented
    continuation of ``prompt``, or the last fenced block that names ``entry``.

    Args:
        text: the response after its thinking.
        entry: name of the function under test.
        prompt: source that the program may continue.
    """
    blocks = _blocks(_without_end(text))
    texts = [block.text for block in blocks]
    fenced = [i for i, block in enumerate(blocks) if block.fenced]
    bodies = [i for i in fenced if prompt and _is_body(texts[i], least=1)]
    mentions = [i for i in fenced if re.search(rf"\b{re.escape(entry)}\b", texts[i])]
    versions = [i for i, text in enumerate(texts) if defines(text, entry)]
    definitions = [i for i in versions if not _is_stub(texts[i], entry)] or versions
    if prompt and _is_body(_before(texts[0], entry), least=2):
        home, kind = 0, "continuation"
    elif definitions:
        home = definitions[-1]
        kind = "whole" if blocks[home].closed else "cut"
    elif bodies:
        home, kind = bodies[-1], "continuation"
    elif mentions:
        home, kind = mentions[-1], "whole"
    elif prompt and _is_body(texts[0], least=1):
        home, kind = 0, "continuation"
    else:
        return None
    if sum(map(len, texts)) > _MOST:
        return Program((texts[home],), 0, kind)
    return Program(tuple(texts), home, kind)


def _is_stub(block: str, entry: str) -> bool:
    """Whether the body of the last definition in a block is only ``...`` or ``pass``."""
    head = rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{re.escape(entry)}\b"
    *_, last = [-1, *(match.start() for match in re.finditer(head, block, re.MULTILINE))]
    signature = rf"{head}[^\n]{{0,300}}:[ \t]*+(?:#[^\n]*+)?\n?[ \t]*+"
    body = rf"{signature}(?:\.\.\.|pass\b)[^\n]*+\n*+(?![ \t])"
    return last >= 0 and re.match(body, block[last:]) is not None


def _before(block: str, entry: str) -> str:
    """The part of a block that may continue the prompt's function: all of it, or what precedes its
    first definition if it defines the function itself."""
    first = _DEFINITION.search(block) if defines(block, entry) else None
    return block[: first.start()] if first else block


def _without_end(text: str) -> str:
    """Strip end-of-text tokens that a model spelled out; the last one may be incomplete."""
    for _ in range(_MOST_MARKS):
        text = text.rstrip()
        mark = _END.search(text, max(len(text) - 40, 0))
        if mark is None:
            break
        text = text[: mark.start()]
    return text


def _is_body(block: str, least: int) -> bool:
    """Whether a block looks like the body of a function: indented by ``least``, or with
    ``return``."""
    line = next((line for line in block.split("\n") if line.strip()), "")
    if line.startswith("\t") or len(line) - len(line.lstrip(" ")) >= least:
        return True
    return _RETURNS.match(line) is not None or (
        _BEGINS.match(line) is not None and _RETURNS.search(block) is not None
    )


def _blocks(text: str) -> list[_Block]:
    """Cut a text at its fences into blocks of code and of prose."""
    # Prose is a block, too: a stray fence then moves no code out of its block.
    blocks = [_Block([], fenced=False)]
    opened = ""
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if opening := _OPENS.match(line):
            line = line[opening.end() :]
        bare = line.rstrip()
        if closing := _CLOSES.search(bare):
            bare = line = bare[: closing.start()]
        margin = _MARGIN.match(line)
        early = _MARK.match(line, margin.end() if margin else 0)
        late = None if early else _LATE.search(bare)
        found = early or late
        mark = found["mark"] if found else ""
        if not found and not opened and "```" in bare:
            # Code between words: ``see ```f = 1``` there``.
            words, _, rest = bare.partition("```")
            inline, ticks, _ = rest.rpartition("```")
            if ticks:
                blocks[-1].lines.append(words)
                _add_line(blocks, inline)
                continue
        if not found or (opened and not mark.startswith(opened)):
            blocks[-1].lines.append(line)
            continue
        if late:
            blocks[-1].lines.append(bare[: late.start()])
        rest = early["rest"] if early else ""
        inline, ticks, _ = rest.rpartition(mark)
        if ticks:
            _add_line(blocks, inline)
            opened = ""
            continue
        closes = bool(opened) and (not rest.strip() or rest[0] in " \t")
        blocks[-1].closed = True
        blocks.append(_Block([], fenced=not closes))
        opened = "" if closes else mark
        code = _CODE.match(rest)
        if code or closes:
            blocks[-1].lines.append(code["code"] if code else rest)
    return blocks


def _add_line(blocks: list[_Block], line: str) -> None:
    """Add a block of one line, with its fences on the same line."""
    code = _CODE.match(line)
    blocks[-1].closed = True
    blocks.append(_Block([code["code"] if code else line], fenced=True, closed=True))
    blocks.append(_Block([], fenced=False))
