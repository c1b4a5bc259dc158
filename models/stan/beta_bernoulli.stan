data {
  int N;  // length of successes
  array[N] int trials;
  array[N] int successes;
  real a;
  real b;
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  target += beta_lpdf(theta | a, b);
  target += binomial_lpmf(successes | trials, theta);
}
