"""A suite: the same agents on several environments, and what follows from what they answered."""
