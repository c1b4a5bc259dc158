"""What a model is: its base class, its capabilities, its fields, and how the zoo finds it."""
