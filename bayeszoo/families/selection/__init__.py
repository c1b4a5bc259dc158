"""Variable selection in linear regression."""
