"""Playing episodes: environments against asynchronous policies."""

from rollouts.collect import Collector, Task, tasks_for
from rollouts.play import Deadlines, TokenEnvironment, play

__all__ = ["Collector", "Deadlines", "Task", "TokenEnvironment", "play", "tasks_for"]
