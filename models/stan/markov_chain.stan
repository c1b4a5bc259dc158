data {
  int N;  // length of next
  int C;  // length of context
  int S;  // length of symbol
  array[N] int next;
  array[N] int previous;
  array[C] vector[S] alpha;
}
parameters {
  array[C] simplex[S] P;
}
model {
  target += dirichlet_lpdf(P | alpha);
  for (n in 1 : N) {
    target += categorical_lpmf(next[n] + 1 | P[previous[n] + 1]);
  }
}
