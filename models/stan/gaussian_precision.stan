data {
  int N;  // length of y
  vector[N] y;
  real a;
  real b;
  real mu;
}
parameters {
  real<lower=0> lam;
}
model {
  target += gamma_lpdf(lam | a, b);
  target += normal_lpdf(y | mu, inv_sqrt(lam));
}
