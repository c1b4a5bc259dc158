data {
  int N;  // length of y
  int J;  // length of feature
  vector[N] y;
  matrix[N, J + 1] terms;
  vector[J] scale;
  real m0;
  vector[J] w0;
  real V0;
  real a0;
  real b0;
}
parameters {
  real<lower=0> sigma2;
  vector[J + 1] w;
}
model {
  real sigma = sqrt(sigma2);
  target += inv_gamma_lpdf(sigma2 | a0, b0);
  target += normal_lpdf(w[1] | m0, sigma * sqrt(V0));
  target += normal_lpdf(w[2 : ] | w0 ./ scale, sigma * sqrt(V0) ./ scale);
  target += normal_lpdf(y | terms * w, sigma);
}
