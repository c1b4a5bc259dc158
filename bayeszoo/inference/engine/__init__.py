"""What several methods share: climbs, compiled densities, and approximations judged by importance weights."""
