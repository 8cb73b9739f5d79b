"""small and large: one knows some of the named constants, the other knows them all."""
