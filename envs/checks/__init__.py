"""What ``check_env`` is made of."""
