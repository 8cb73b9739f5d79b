"""alice, bob and carol, each strong where a peer is weak, and dora, larger; all read hints."""
