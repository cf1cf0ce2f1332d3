"""A Kafka broker of our own, for tests: its jars (fetch.py, jars.lock) and its start and stop (server.py)."""
