"""Tables of answers to questions.

Below a line ``QUESTION => GOLD`` stand right answers, ``+ one | another``, and wrong ones,
``- one | another``. The kind is ``number`` where gold is one and else ``math``, unless it stands in
front: ``list: QUESTION => GOLD``.
"""

import re

from coterie.datatypes import Problem


def cases(table: str) -> list[tuple[Problem, str, bool]]:
    """(problem, answer, whether it is right) for each answer."""
    found: list[tuple[Problem, str, bool]] = []
    for entry in re.findall(r"(?m)^(?![-+#] ).*(?:\n(?![-+] ).*)*(?:\n[-+] .*)+", table):
        head, *answers = re.split(r"\n(?=[-+] )", entry.strip())
        match = re.fullmatch(r"(?:(math|number|list|text): )?(.*) => (.*)", head.replace("\n", " "))
        assert match is not None, head
        kind = match[1] or ("number" if re.fullmatch(r"-?[0-9.]+", match[3]) else "math")
        problem = Problem("p", match[2], match[3], kind)  # type: ignore[arg-type]
        for line in answers:
            found += [(problem, answer, line[0] == "+") for answer in line[2:].split(" | ")]
    return found
