"""Groups of a hierarchical model, a row each."""
