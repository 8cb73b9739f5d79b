"""Metrics that are means over problems, all from the same resamples."""

# Q problems, M columns, R resamples

from collections.abc import Mapping

import numpy as np

from evaluation.evaluation import Resampled
from evaluation.metrics.bootstrap import resampled_means
from evaluation.metrics.present import Floats, mean_present


def column_means(columns: Mapping[str, Floats], resamples: int, seed: int) -> dict[str, Resampled]:
    """The mean of each column with its bootstrap; what a problem lacks is NaN there."""
    values_QM = np.stack(list(columns.values()), axis=1)
    means_RM = resampled_means(values_QM, resamples=resamples, seed=seed)
    mean_M = mean_present(values_QM, axis=0)
    count_M = (~np.isnan(values_QM)).sum(axis=0)
    return {
        name: Resampled(float(mean_M[place]), means_RM[:, place], int(count_M[place]))
        for place, name in enumerate(columns)
    }
