"""The checks that every model must pass, and the scorecards that store their results."""
