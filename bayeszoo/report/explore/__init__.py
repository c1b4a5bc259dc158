"""Pages in which a reader moves a prior, adds rows, or steps through EM."""
