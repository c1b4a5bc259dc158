data {
  int N;  // length of successes
  array[N] int trials;
  array[N] int successes;
  real a;
  real b;
  real shape;
}
parameters {
  real<lower=0, upper=1> mean;
  real<lower=1> size;
  vector<lower=0, upper=1>[N] theta;
}
model {
  target += beta_lpdf(mean | a, b);
  target += pareto_lpdf(size | 1, shape);
  target += beta_lpdf(theta | mean * size, (1 - mean) * size);
  target += binomial_lpmf(successes | trials, theta);
}
