"""Where problems come from: generators, files, the hub."""
