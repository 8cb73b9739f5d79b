"""Models in separate processes, here or on a cluster."""

from coterie.cli.extras import Extra

EXTRA = Extra(
    "cluster",
    settings={"cluster": "coterie.extras.cluster.settings:ClusterSettings"},
    host="coterie.extras.cluster.host:HOST",
    check="coterie.extras.cluster.host:check_fits",
)
