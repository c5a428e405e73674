/* One rank of MPI_Allreduce, in turns (turn.h).
 *
 *   allreduce_mpi SOCKET
 *
 * The variant of a turn means nothing here: algorithms are chosen when the job
 * is started. */
#include <mpi.h>

#include "turn.h"

static void *vector(size_t bytes) {
  void *v = malloc(bytes ? bytes : 1);
  if (!v) turn_fail("a vector");
  return v;
}

static void sum(const float *in, float *out, size_t count) {
  MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void play(struct turns *to, const struct turn *t, int rank, int ranks) {
  float *in = vector(t->count * sizeof *in), *out = vector(t->count * sizeof *out);
  int64_t *times = vector((size_t)t->iterations * sizeof *times);
  struct rusage from, until;
  int right = 1;
  turn_fill(in, t->count, rank, 0);
  for (int i = 0; i < t->warmup; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    sum(in, out, t->count);
  }
  if (t->warmup) right = turn_right(out, t->count, ranks, 0);
  turn_fill(in, t->count, rank, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  from = turn_usage();
  for (int i = 0; i < t->iterations; i++) {
    int64_t begun;
    MPI_Barrier(MPI_COMM_WORLD);
    begun = turn_now();
    sum(in, out, t->count);
    times[i] = turn_now() - begun;
  }
  until = turn_usage();
  right = right && turn_right(out, t->count, ranks, 1);
  turn_done(to, right, &from, &until, times, t->iterations);
  free(in);
  free(out);
  free(times);
}

int main(int argc, char **argv) {
  struct turns turns;
  struct turn t;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  if (argc != 2) {
    fprintf(stderr, "usage: allreduce_mpi SOCKET\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  turns = turn_join(argv[1], rank);
  while (turn_next(&turns, &t)) play(&turns, &t, rank, ranks);
  MPI_Finalize();
  return 0;
}
