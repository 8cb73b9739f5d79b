"""The loop's parts: session, runtime, warm-up."""

import time

STARTED = time.perf_counter()
"""When this process began to work; a run's wall-clock time counts from here, imports included."""
