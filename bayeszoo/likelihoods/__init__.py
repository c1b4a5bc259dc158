"""Compiled likelihoods: loops on arrays, and PyTensor operations on the loops."""
