"""Sources of problems: generators, files, the hub."""
