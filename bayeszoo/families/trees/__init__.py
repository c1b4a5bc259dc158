"""Features whose dependences are a tree."""
