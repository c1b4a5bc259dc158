"""Code shared by several methods: climbs, Gaussian approximations, and the cost of a run."""
