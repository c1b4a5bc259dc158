data {
  int N;  // length of document
  int V;  // length of word
  int K;
  array[N, V] int counts_data;
  vector[K] alpha;
  vector[V] eta;
}
parameters {
  array[N] simplex[K] proportions;
  array[K] simplex[V] topics;
}
model {
  for (k in 1 : K) {
    target += dirichlet_lpdf(topics[k] | eta);
  }
  for (n in 1 : N) {
    vector[V] words = rep_vector(0, V);
    for (k in 1 : K) {
      words += proportions[n, k] * topics[k];
    }
    target += dirichlet_lpdf(proportions[n] | alpha);
    target += multinomial_lpmf(counts_data[n] | words);
  }
}
