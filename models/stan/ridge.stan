data {
  int N;  // length of y
  int J;  // length of feature
  vector[N] y;
  matrix[N, J + 1] terms;
  vector[J] scale;
  real m0;
  real s0;
  vector[J] tau;
  real sigma;
}
parameters {
  vector[J + 1] w;
}
model {
  target += normal_lpdf(w[1] | m0, s0);
  target += normal_lpdf(w[2 : ] | 0, tau ./ scale);
  target += normal_lpdf(y | terms * w, sigma);
}
