data {
  int N;  // length of y
  vector[N] y;
  real mu0;
  real kappa0;
  real alpha0;
  real beta0;
}
parameters {
  real<lower=0> lam;
  real mu;
}
model {
  target += gamma_lpdf(lam | alpha0, beta0);
  target += normal_lpdf(mu | mu0, inv_sqrt(kappa0 * lam));
  target += normal_lpdf(y | mu, inv_sqrt(lam));
}
