"""Run models in separate processes, on this machine or on the nodes of a cluster."""

from coterie.cli.extras import Extra

EXTRA = Extra(
    "cluster",
    settings={"cluster": "coterie.extras.cluster.settings:ClusterSettings"},
    host="coterie.extras.cluster.host:HOST",
    check="coterie.extras.cluster.host:check_fits",
)
