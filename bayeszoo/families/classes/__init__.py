"""Classes whose features have a conjugate law of their own: p(class, features), and by Bayes' theorem the class."""
