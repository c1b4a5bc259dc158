"""Features that depend on each other along a tree."""
