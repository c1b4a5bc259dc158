"""Loops of likelihoods and samplers, compiled by numba; nothing here knows PyTensor.

Every function that a compiled one calls is in its file or in `vectors`, because numba's cache of compiled code looks at
the time of one file: save those that import `vectors` when that one has changed. All are compiled with
``fastmath=False``: without it a function takes over that of the first one that calls it, and PyTensor's moves terms
about.
"""
