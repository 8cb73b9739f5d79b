"""The tiny ``policy`` that may ask, and the ``expert`` that it asks."""
