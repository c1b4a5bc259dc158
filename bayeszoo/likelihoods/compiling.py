"""The decorator of compiled loops."""

import numba

loop = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
