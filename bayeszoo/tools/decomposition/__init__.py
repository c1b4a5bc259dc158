"""The change of a total taken apart: what of it is due to which factor."""
