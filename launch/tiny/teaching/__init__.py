"""alice, bob and carol: roles that are strong where a peer is weak, and that read hints."""
