"""An episode of each environment, drawn for its page."""

from pictures.svg import Picture


def core_teaching() -> Picture:
    """Draw a round with the two roles side by side."""
    draw = Picture("One round of core-teaching", 640, 566)
    draw.words(616, 36, "7 + 3 # 6 = ?", "mono end", 16)
    draw.words(24, 76, "Round A: everybody tries alone", "soft")
    for x, name, tone, answer, mark in (
        (24, "alice_0", "blue", "$… = 4", "✗"),
        (174, "alice_1", "blue", "$… = 1", "✗"),
        (336, "bob_0", "orange", "$… = 0 # 6 = 8", "✓"),
        (486, "bob_1", "orange", "$… = 5", "✗"),
    ):
        draw.card(x, 90, 140 if x < 300 else 130 + 10 * (x == 336), [name, answer], tone, mark)
    draw.arrow((406, 150), (320, 198), tone="orange")
    draw.card(140, 200, 360, ["Hint: bob's way, without its answer", "$7 + 3 = 0 # 6 ="], "violet")
    draw.arrow((240, 260), (114, 326), tone="violet", label="coin", dashed=True)
    draw.arrow((400, 260), (526, 326), tone="violet", label="coin", dashed=True)
    draw.words(24, 284, "Round B: again", "soft")
    draw.card(24, 328, 180, ["alice_2", "$… = 0 # 6 = 8"], "blue", "✓")
    draw.card(436, 328, 180, ["bob_2", "$… = 0 # 6 = 8"], "orange", "✓")
    draw.words(320, 346, "who failed is rescued;", "soft middle", 14)
    draw.words(320, 366, "who taught is paid, too", "soft middle", 14)
    draw.arrow((114, 388), (200, 430), tone="blue")
    draw.arrow((526, 388), (440, 430), tone="orange")
    draw.card(
        90, 432, 460,
        [
            "Reward of each trace",
            "right + unlike one's peers + rescue + teaching",
            "compared with all traces of this problem",
        ],
        "green",
    )  # fmt: skip
    draw.words(320, 540, "Each role learns from its own traces: two models, one group.", "middle")
    return draw


def peer_distillation() -> Picture:
    """Draw a wrong answer that is scored again after a peer's right one."""
    draw = Picture("One round of peer distillation", 640, 560)
    draw.words(616, 36, "7 + 3 # 6 = ?", "mono end", 16)
    draw.words(24, 76, "Everybody tries alone", "soft")
    for x, name, tone, answer, mark in (
        (24, "alice_0", "blue", "$… = 0 # 6 = 4", "✗"),
        (174, "alice_1", "blue", "$… = 0 # 6 = 1", "✗"),
        (326, "bob_0", "orange", "$… = 0 # 6 = 8", "✓"),
        (476, "bob_1", "orange", "$… = 0 # 6 = 8", "✓"),
    ):
        draw.card(x, 90, 140, [name, answer], tone, mark)
    draw.arrow((396, 150), (320, 198), tone="orange")
    draw.card(140, 200, 360, ["Hint: bob's way, without its answer", "$7 + 3 = 0 # 6 ="], "violet")
    draw.arrow((320, 260), (320, 296), tone="violet")
    draw.arrow((80, 150), (80, 296), tone="blue")
    draw.card(
        24, 298, 592,
        ["Alice's past weights score her wrong answer after it"],
        "violet", height=104,
    )  # fmt: skip
    for place, token in enumerate(("7", "+", "3", "=", "0", "#", "6", "=", "4")):
        wrong = place == 8
        draw.words(52 + 34 * place, 352, token, f"mono middle{' bold f-orange' * wrong}", 17)
        draw.words(52 + 34 * place, 384, "↓" if wrong else "·", "middle soft", 17)
    draw.words(366, 352, "8", "mono middle bold f-green", 17)
    draw.words(366, 384, "↑", "middle soft", 17)
    draw.words(400, 352, "it would have", "soft", 14)
    draw.words(400, 372, "written 8 there", "soft", 14)
    draw.arrow((320, 402), (320, 436), tone="green")
    draw.card(
        90, 438, 460,
        ["Advantage of each token", "right or wrong + what the hint would have changed"],
        "green",
    )  # fmt: skip
    draw.words(320, 532, "Nothing is sampled under the hint: it costs no token.", "middle")
    return draw


def corea_deferral() -> Picture:
    """Draw a cascade with stated confidence."""
    draw = Picture("An episode of corea-deferral", 640, 396)
    draw.card(
        24, 62, 592, ["One question, the same message to both models", "$2 + 5 - 3 ="], "plain"
    )
    draw.arrow((160, 122), (160, 158), tone="blue")
    draw.card(24, 160, 272, ["small_0", r"$\boxed{4} \confidence{0.9}"], "blue", "✓")
    draw.card(344, 160, 272, ["small_1", r"$\boxed{5} \confidence{0.5}"], "blue", "✗")
    draw.arrow((480, 122), (480, 158), tone="blue")
    draw.arrow((160, 220), (160, 292), tone="green", label="sure: 0.9 ≥ threshold")
    draw.arrow((480, 220), (480, 292), tone="orange", label="unsure: handed on")
    draw.card(24, 294, 272, ["Kept: the small answer", "costs little"], "green")
    draw.card(344, 294, 272, ["large_1 answers instead", r"$\boxed{4}"], "orange", "✓")
    draw.words(320, 378, "small learns: right + form + confidence that fits.", "middle")
    return draw


def eapo_consultation() -> Picture:
    """Draw a conversation with experts whose help fades."""
    draw = Picture("An episode of eapo-consultation", 640, 500)
    draw.card(24, 62, 280, ["policy_0", "$<think> 7 + 8 = 5 </think>"], "blue")
    draw.card(24, 132, 280, ["asks, all at once", "$<agent_calls> [...]"], "blue")
    for y, number, query, result in ((62, 1, "7 + 8 =", "5"), (200, 2, "5 - 3 =", "2")):
        draw.card(
            392, y, 224, [f"expert_{number}: one query", f"${query}", f"$→ {result}"], "orange"
        )
    draw.arrow((304, 150), (390, 104), tone="orange", sideways=True)
    draw.arrow((304, 172), (390, 236), tone="orange", sideways=True)
    draw.arrow((504, 281), (504, 322), tone="orange")
    draw.card(330, 324, 286, ["A coin lets replies in", "less often from step to step"], "violet")
    draw.arrow((330, 354), (306, 354), tone="violet", sideways=True)
    draw.card(
        24, 314, 280,
        ["goes on with what came back", "$<agent_returns> 2", "$7 + 8 = 5 - 3 = 2"],
        "blue",
    )  # fmt: skip
    draw.arrow((110, 192), (110, 312), tone="blue")
    draw.arrow((70, 314), (70, 194), tone="blue", dashed=True)
    draw.words(122, 258, "again, while rounds are left", "soft halo", 14)
    draw.arrow((164, 395), (164, 426), tone="green")
    draw.card(24, 428, 280, ["Answer: 2"], "green", "✓")
    draw.words(330, 446, "Paid: right, less what calls cost.", "", 14)
    draw.words(330, 468, "In the end it is measured alone.", "soft", 14)
    return draw


def sd_e2() -> Picture:
    """Draw several strategies in one answer."""
    draw = Picture("An episode of sd-e2", 640, 330)
    draw.card(
        24, 62, 592, ["One model writes N traces; none sees another", "$2 + 5 - 3 ="], "plain"
    )
    for x, name, first, second, mark in (
        (24, "alice_0", "$strategy 1 → 4", "$strategy 2 → 5", "✓"),
        (336, "alice_1", "$strategy 1 → 5", "", "✗"),
    ):
        draw.arrow((x + 140, 122), (x + 140, 158), tone="blue")
        lines = [name, first, second or "$", "$final answer → " + ("4" if mark == "✓" else "5")]
        draw.card(x, 160, 280, lines, "blue", mark)
    draw.words(320, 294, "Paid: a right outcome, strategies that differ,", "middle")
    draw.words(320, 315, "use of the one that worked, and form.", "middle")
    return draw


def leap() -> Picture:
    """Draw paths that read each other's summaries."""
    draw = Picture("An episode of leap", 640, 420)
    for x, name, thought, summary in (
        (24, "policy_0", "$7 + 8 = 5 ...", "$7 + 8 = 5"),
        (228, "policy_1", "$so ...", "$no idea"),
        (432, "policy_2", "$8 - 3 = 5 ...", "$8 - 3 = 5"),
    ):
        draw.card(x, 62, 184, [name, thought], "blue")
        draw.arrow((x + 92, 122), (x + 92, 148), tone="blue")
        draw.card(x, 150, 184, ["sums up", summary], "violet")
        draw.arrow((x + 92, 210), (x + 92, 246), tone="violet")
        draw.arrow((x + 92, 288), (x + 92, 328), tone="blue")
        draw.card(x, 330, 184, ["reads, goes on"], "blue")
    draw.card(24, 248, 592, ["Router: who reads whose summaries, such as the least alike"], "grey")
    draw.words(320, 398, "Again after every T tokens, until each path has an answer.", "middle")
    return draw


def games() -> Picture:
    """Draw a game, seat by seat."""
    draw = Picture("A game as an episode", 640, 344)
    draw.card(
        24, 62, 250,
        ["The game, as it is", "$1 0 0", "$0 2 0", "$0 0 0", "$Moves: 1 2 3 5 6 7 8"],
    )  # fmt: skip
    draw.card(366, 62, 250, ["player_1_0: a model", "$ 8"], "blue")
    draw.card(366, 142, 250, ["player_2_0: another,", "itself, or scripted:random"], "orange")
    draw.arrow((274, 86), (364, 86), tone="blue", sideways=True, label="text")
    draw.arrow((366, 172), (276, 140), tone="orange", sideways=True, label="move")
    draw.card(24, 222, 592, ["Every move is a turn of its player's trace, tokens and all"], "grey")
    draw.arrow((320, 262), (320, 288), tone="green")
    draw.words(320, 310, "Paid at the end: won, drawn, lost, illegal;", "middle")
    draw.words(320, 331, "compared with games from the same seat.", "middle")
    return draw


def tool_use() -> Picture:
    """Draw a turn that a console interrupts."""
    draw = Picture("An episode of tool use", 640, 330)
    draw.card(
        24, 62, 270, ["solver_0 writes", "$<python>", "$print(17 * 23)", "$</python>"], "blue"
    )
    draw.arrow((294, 112), (364, 112), tone="orange", sideways=True)
    draw.card(
        366,
        62,
        250,
        ["Python, under guard", "no files, no network;", "limits of time and memory", "$391"],
        "orange",
    )
    draw.arrow((366, 150), (296, 206), tone="violet", sideways=True)
    draw.card(24, 184, 270, ["reads on in its own turn", "$<output>391</output>"], "violet")
    draw.arrow((159, 244), (159, 270), tone="green")
    draw.card(24, 272, 270, ["Answer: 391"], "green", "✓")
    draw.words(330, 214, "The output is context: no loss on it.", "", 14)
    draw.words(330, 238, "Several calls, one trace.", "soft", 14)
    draw.words(330, 298, "Paid: right, less what calls cost.", "", 14)
    return draw


def gateway() -> Picture:
    """Draw a program, the models that it calls, and the rows that its calls become."""
    draw = Picture("Any program is a player", 640, 452)
    draw.card(
        24, 62, 206,
        ["Your program", "an SDK, a graph, curl", "$POST /v1/...", "answer or rewards"],
        "grey",
    )  # fmt: skip
    draw.card(
        268, 62, 200, ["The gateway", "one key an episode;", "messages in,", "token ids out"],
        "violet",
    )  # fmt: skip
    draw.card(512, 52, 104, ["alice", "a model"], "blue")
    draw.card(512, 124, 104, ["bob", "a model"], "orange")
    draw.arrow((230, 100), (266, 100), tone="grey", sideways=True)
    draw.arrow((268, 130), (232, 130), tone="violet", sideways=True)
    draw.arrow((468, 100), (510, 80), tone="blue", sideways=True)
    draw.arrow((468, 130), (510, 152), tone="orange", sideways=True)
    draw.arrow((368, 164), (368, 204), tone="green")
    draw.words(24, 222, "What is trained: token by token what the models saw", "soft")
    row = "$P P a a a  E E  a a  E E E  a a a a"
    draw.card(24, 236, 592, ["appended: one row", row], "blue", "✓")
    draw.card(24, 306, 284, ["a branch: a second row", "$(P P a a a  E E)  b b b"], "blue", "✓")
    draw.card(332, 306, 284, ["rewritten: a row anew", "$Q Q Q Q  a a a"], "blue", "✓")
    draw.words(320, 394, "P, Q given; a, b sampled, learned once; E inserted.", "middle", 14)
    draw.words(320, 422, "The rows of an agent weigh as one.", "middle")
    return draw


def data_way() -> Picture:
    """Draw the way from a problem to new weights."""
    draw = Picture("The way of the data, one step", 640, 640)
    rooms = (
        ("problems/", "Problem", "question, gold answer, kind", "plain"),
        ("envs/", "text environment", "whom to ask what; rewards by term", "violet"),
        ("envs/token_view", "token view", "all that is seen or said, as token ids", "violet"),
        ("rollouts/", "Trajectory", "tokens, mask, log-probabilities", "blue"),
        ("algorithms/", "credit", "groups of traces → advantages", "green"),
        ("algorithms/", "loss and update", "clipped ratio over the sampled tokens", "green"),
        ("training/", "run directory", "metrics, episodes, checkpoints, report", "grey"),
    )  # fmt: skip
    for place, (room, name, what, tone) in enumerate(rooms):
        y = 62 + 82 * place
        draw.words(24, y + 36, room, "mono soft", 13.5)
        draw.card(156, y, 350, [name, what], tone)
        if place < len(rooms) - 1:
            draw.arrow((331, y + 60), (331, y + 80), tone=tone)
    draw.card(524, 226, 100, ["policies"], "orange")
    draw.words(573, 214, "agents/", "mono soft middle", 13.5)
    draw.arrow((506, 246), (522, 246), tone="orange", sideways=True)
    draw.arrow((560, 265), (508, 328), tone="orange", sideways=True)
    draw.arrow((506, 500), (596, 268), tone="orange", dashed=True)
    draw.words(614, 420, "new weights", "soft end halo", 14)
    return draw


DRAWINGS = {
    "core-teaching": core_teaching,
    "peer-distillation": peer_distillation,
    "corea-deferral": corea_deferral,
    "eapo-consultation": eapo_consultation,
    "sd-e2": sd_e2,
    "leap": leap,
    "games": games,
    "tool-use": tool_use,
    "gateway": gateway,
    "data": data_way,
}
