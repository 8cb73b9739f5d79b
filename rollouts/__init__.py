"""Playing episodes: environments against asynchronous policies."""

from coterie.rollouts.collect import Collector, Task, tasks_for
from coterie.rollouts.play import Deadlines, TokenEnvironment, play

__all__ = ["Collector", "Deadlines", "Task", "TokenEnvironment", "play", "tasks_for"]
