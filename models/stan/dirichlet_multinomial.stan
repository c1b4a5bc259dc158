data {
  int N;  // length of counts
  int K;  // length of category
  array[N, K] int counts;
  vector[K] alpha;
}
parameters {
  simplex[K] p;
}
model {
  target += dirichlet_lpdf(p | alpha);
  for (n in 1 : N) {
    target += multinomial_lpmf(counts[n] | p);
  }
}
