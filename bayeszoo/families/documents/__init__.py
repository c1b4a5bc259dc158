"""Documents and topics: mixtures of words, topic models, their samplers and scores."""
