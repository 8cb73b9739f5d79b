"""Configuration, run directories, checkpoints, and the training loop's parts."""

import time

STARTED = time.perf_counter()
"""When this process began to work; a run's wall-clock time counts from here, imports included."""
