data {
  int N;  // length of y
  array[N] int y;
  vector[N] exposure;
  real a;
  real b;
}
parameters {
  real<lower=0> rate;
}
model {
  target += gamma_lpdf(rate | a, b);
  target += poisson_lpmf(y | rate * exposure);
}
