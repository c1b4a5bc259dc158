data {
  int N;  // length of y
  vector[N] y;
  real m0;
  real s0;
  real t_q;
  real t_r;
}
parameters {
  real<lower=0> q;
  real<lower=0> r;
  vector[N] level;
}
model {
  target += normal_lpdf(q | 0, t_q) + log(2);
  target += normal_lpdf(r | 0, t_r) + log(2);
  target += normal_lpdf(level[1] | m0, s0);
  target += normal_lpdf(level[2 : ] | level[ : N - 1], q);
  target += normal_lpdf(y | level, r);
}
