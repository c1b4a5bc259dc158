"""Models that defeat a sampler. Tests put this folder on the path of ``bayeszoo.models``, as a second zoo."""
