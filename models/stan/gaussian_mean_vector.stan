data {
  int N;  // length of Y
  int D;  // length of column
  array[N] vector[D] Y;
  vector[D] m0;
  matrix[D, D] S0;
  matrix[D, D] Sigma;
}
parameters {
  vector[D] mu;
}
model {
  target += multi_normal_lpdf(mu | m0, S0);
  target += multi_normal_lpdf(Y | mu, Sigma);
}
