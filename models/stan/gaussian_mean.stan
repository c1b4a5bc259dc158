data {
  int N;  // length of y
  vector[N] y;
  real m0;
  real s0;
  real sigma;
}
parameters {
  real mu;
}
model {
  target += normal_lpdf(mu | m0, s0);
  target += normal_lpdf(y | mu, sigma);
}
