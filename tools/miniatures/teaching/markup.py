"""The fixed strings that tiny models read and write, as tokenizers and corpus spell them."""

TAGS = (
    '<strategy id="1">',
    "</strategy>",
    "<result>",
    "</result>",
    "<final_answer>",
    "</final_answer>",
)
QUESTION = "Question:"
SOLVE = "\nLet's solve this step by step:"
HINT = "\nHint:\n"


def prompt(question: str, hint: str = "") -> str:
    """What a model is asked: cold without ``hint``."""
    shown = f"{HINT}{hint}" if hint else ""
    return f"{QUESTION} {question}{shown}{SOLVE}"


def working(first: int, operators: str, operands: tuple[int, ...], values: tuple[int, ...]) -> str:
    """``7 + 8 = 5 - 3 =``: each operation with the value it is applied to; the last result is
    left out, so this is also what is left of a trace as a hint. One value less than operators."""
    steps = [f"{first}"]
    for index, (sign, operand) in enumerate(zip(operators, operands)):
        steps.append(f"{sign} {operand} =")
        if index + 1 < len(operators):
            steps.append(f"{values[index]}")
    return " ".join(steps)


def trace(shown_working: str, answer: int) -> str:
    """What a model answers; it begins with the space that parts it from the prompt."""
    return (
        f' <strategy id="1"> {shown_working} <result> {answer} </result> </strategy>'
        f" <final_answer> {answer} </final_answer>"
    )
