"""Mathematics that the models of a family share, one folder a family."""
