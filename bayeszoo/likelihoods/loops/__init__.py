"""Compiled loops over NumPy arrays; PyTensor is not needed here."""
