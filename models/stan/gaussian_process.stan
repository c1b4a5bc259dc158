data {
  int N;  // length of y
  int J;  // length of feature
  vector[N] y;
  array[N] vector[J] places;
  real m0;
  real t_amplitude;
  real a_length;
  real b_length;
  real t_sigma;
}
parameters {
  real<lower=0> amplitude;
  real<lower=0> length;
  real<lower=0> sigma;
}
model {
  matrix[N, N] covariance = gp_exp_quad_cov(places, amplitude, length);
  target += normal_lpdf(amplitude | 0, t_amplitude) + log(2);
  target += inv_gamma_lpdf(length | a_length, b_length);
  target += normal_lpdf(sigma | 0, t_sigma) + log(2);
  target += multi_normal_lpdf(y | rep_vector(m0, N), add_diag(covariance, square(sigma)));
}
