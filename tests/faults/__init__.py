"""Faults on purpose: `make faults` runs 50 rounds of each, `make test` two (docs/reliability.md)."""
