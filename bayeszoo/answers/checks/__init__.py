"""How well a fit describes its rows: residuals, predictive checks, and scores of rows left out."""
