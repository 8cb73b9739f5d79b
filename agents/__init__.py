"""Policies: models in this process or in engines that answer prompts."""
