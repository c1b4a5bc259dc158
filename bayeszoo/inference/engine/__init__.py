"""What several methods share: climbs, compiled densities, and Gaussian approximations."""
