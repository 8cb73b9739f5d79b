"""Configuration, run directories, checkpoints, and the training loop's parts."""
