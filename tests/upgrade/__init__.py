"""State that earlier versions wrote and later ones must read: a folder a version, by `python -m upgrade.write`."""
