data {
  int N;  // length of y
  vector[N] y;
  vector[N] se;
  real m0;
  real s0;
  real t0;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[N] theta;
}
model {
  target += normal_lpdf(mu | m0, s0);
  target += cauchy_lpdf(tau | 0, t0) + log(2);
  target += normal_lpdf(theta | mu, tau);
  target += normal_lpdf(y | theta, se);
}
