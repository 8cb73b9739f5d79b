"""Programs of other frameworks, unchanged, as players (docs/gateway.md)."""
