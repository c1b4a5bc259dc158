"""A PyMC model becomes the text of a Python script that makes the same model."""
