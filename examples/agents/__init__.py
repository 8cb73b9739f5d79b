"""Unchanged programs of other frameworks as players (docs/gateway.md)."""
