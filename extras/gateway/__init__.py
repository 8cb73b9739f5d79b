"""Programs that talk to a chat endpoint play the roles of an episode, unchanged."""

from coterie.datatypes.extras import EnvironmentKind, Extra

EXTRA = Extra(
    "gateway",
    environments={
        "harness": EnvironmentKind("h11", "", "coterie.extras.gateway.kinds"),
        "command": EnvironmentKind("h11", "", "coterie.extras.gateway.kinds"),
    },
)
