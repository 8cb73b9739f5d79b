"""Playing episodes: environments against asynchronous policies."""
