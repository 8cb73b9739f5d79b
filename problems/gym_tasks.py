"""The reasoning-gym tasks that our checker can judge, and how it compares their answers.

Each has one short answer, accepted by the task's own scorer exactly when it equals the gold answer
by value (``number``) or as a word (``text``). Left out are tasks with many right answers
(countdown, sudoku), plans, grids, rounded decimals, and those whose own gold answer can be empty
(base_conversion of 0) or whose own scorer takes any answer (game_of_life_halting).
"""

from collections.abc import Mapping

from vocabulary import AnswerKind

NUMBER_TASKS = (
    "aiw", "basic_arithmetic", "binary_alternation", "chain_sum", "circuit_logic", "count_bits",
    "count_primes", "decimal_chain_sum", "dice", "gcd", "gsm_symbolic", "largest_island", "lcm",
    "leg_counting", "letter_counting", "number_sequence", "products", "rectangle_count",
    "rotten_oranges", "self_reference", "simple_equations", "simple_geometry",
)  # fmt: skip

TEXT_TASKS = (
    "caesar_cipher", "calendar_arithmetic", "color_cube_rotation", "course_schedule",
    "family_relationships", "isomorphic_strings", "mahjong_puzzle",
    "needle_haystack", "ransom_note", "spell_backward", "syllogism",
)  # fmt: skip

TASKS: Mapping[str, AnswerKind] = {
    **dict.fromkeys(NUMBER_TASKS, "number"),
    **dict.fromkeys(TEXT_TASKS, "text"),
}
