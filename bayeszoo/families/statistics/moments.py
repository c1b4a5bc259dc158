"""The former place of `bayeszoo.distributions.statistics.moments`, for models of users that import it from here."""

from bayeszoo.distributions.statistics.moments import Moments, two_sum

__all__ = ["Moments", "two_sum"]
