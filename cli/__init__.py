"""The command line: flags, config files and plug-ins become settings, errors become sentences."""
