"""What engines are built from, each part against its paper."""
