"""The systems that people would pick instead, on the same rows. Each has its own environment: `make bench-peers`."""
