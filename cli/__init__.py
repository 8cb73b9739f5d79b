"""Turns words into settings, and errors into sentences: flags, config files, plug-ins, commands."""
