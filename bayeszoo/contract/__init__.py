"""The checks that every model must pass, and the scorecards that store what they measured."""
