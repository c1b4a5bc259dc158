data {
  int N;  // length of y
  array[N] int y;
  vector[N] exposure;
  real a0;
  real b1;
  real b2;
}
parameters {
  real<lower=0> shape;
  real<lower=0> rate;
  vector<lower=0>[N] lam;
}
model {
  target += exponential_lpdf(shape | 1 / a0);
  target += gamma_lpdf(rate | b1, b2);
  target += gamma_lpdf(lam | shape, rate);
  target += poisson_lpmf(y | exposure .* lam);
}
