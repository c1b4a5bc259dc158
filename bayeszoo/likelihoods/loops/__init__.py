"""Loops of likelihoods and samplers, compiled by numba; nothing here knows PyTensor.

Functions that a compiled one calls are in its file or in `vectors`, because numba's cache checks the modification time
of one file only, except in files that import `vectors` when `vectors` has changed. All are compiled with
``fastmath=False``: without it a function inherits the option of its first caller, and PyTensor's option reorders terms.
"""
