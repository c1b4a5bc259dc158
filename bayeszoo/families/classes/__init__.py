"""Class-conditional models: p(class, features) with conjugate laws, and class probabilities by Bayes' theorem."""
