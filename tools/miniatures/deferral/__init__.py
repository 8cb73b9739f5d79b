"""smaller, small and large: some know some of the named constants, the last knows them all."""
