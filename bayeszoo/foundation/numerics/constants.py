"""Constants of densities."""

import math

LOG_2_PI = math.log(2 * math.pi)
"""The log of 2 pi: a normal density has minus half of it for each dimension."""
