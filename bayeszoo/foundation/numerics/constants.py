"""Constants of densities."""

import math
import sys

LOG_2_PI = math.log(2 * math.pi)
"""The log of 2 pi: a normal density has minus half of it for each dimension."""
TINY = sys.float_info.min
"""The least number with all its digits, 2e-308: in place of 0 as a divisor or a standard deviation."""
LEAST_LOG = -1e300
"""In place of the log of 0: differences and means of it are no NaN."""
