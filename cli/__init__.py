"""Words become settings, and errors sentences.

Flags, config files, plug-ins and commands.
"""
