"""Mathematics shared by the models of a family, one folder per family."""
