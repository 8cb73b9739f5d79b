"""Plan, check and track a run; push and serve models."""

from coterie.cli.extras import Extra, Program

EXTRA = Extra(
    "ops",
    programs={
        "doctor": Program(
            "coterie.extras.ops.doctor.__main__", "check the set-up of a run: train --doctor"
        ),
        "push": Program(
            "coterie.extras.ops.push", "send what a run has trained to the Hugging Face Hub"
        ),
        "serve": Program("coterie.extras.ops.serve", "serve a model to roles of other runs"),
    },
    instead={
        "plan": "coterie.extras.ops.plan_report:show_plan",
        "doctor": "coterie.extras.ops.doctor.examine:examine",
    },
    sink="coterie.extras.ops.trackers:open_trackers",
    check="coterie.extras.ops.checks:check",
)
