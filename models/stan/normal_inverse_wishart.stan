data {
  int N;  // length of Y
  int D;  // length of column
  array[N] vector[D] Y;
  vector[D] mu0;
  real kappa0;
  real nu0;
  matrix[D, D] Psi0;
}
parameters {
  cov_matrix[D] Sigma;
  vector[D] mu;
}
model {
  target += inv_wishart_lpdf(Sigma | nu0, Psi0);
  target += multi_normal_lpdf(mu | mu0, Sigma / kappa0);
  target += multi_normal_lpdf(Y | mu, Sigma);
}
