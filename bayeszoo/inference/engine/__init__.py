"""What several methods share: climbs, Gaussian approximations, and what a run may cost."""
