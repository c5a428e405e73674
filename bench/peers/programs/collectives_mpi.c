/* One rank of the collectives of MPI, in turns (turn.h).
 *
 *   collectives_mpi SOCKET
 *
 * The variant of a turn is the collective, "default" an allreduce: algorithms are
 * chosen when the job is started. */
#include <mpi.h>

#include "turn.h"

static void *vector(size_t bytes) {
  void *v = malloc(bytes ? bytes : 1);
  if (!v) turn_fail("a vector");
  return v;
}

/* What a turn's variant asks for. Vectors are as in bench/timing: what a member
 * gives, and gets, of a turn's count. */
enum { ALLREDUCE, REDUCE, BROADCAST, BARRIER, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCAN };

struct task {
  int of, rank, ranks, salt;
  size_t in, out, each; /* floats of the vectors, and of a piece */
  float *give, *get;
};

static int collective(const char *name) {
  static const char *const names[] = {"default", "reduce", "broadcast", "barrier", "gather", "scatter", "allgather", "alltoall", "reduce-scatter", "scan"};
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (!strcmp(name, names[i])) return i;
  fprintf(stderr, "no collective %s\n", name);
  exit(2);
}

static void run(struct task *t) {
  int n = (int)t->each;
  switch (t->of) {
  case ALLREDUCE: MPI_Allreduce(t->give, t->get, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
  case REDUCE: MPI_Reduce(t->give, t->get, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); break;
  case BROADCAST: MPI_Bcast(t->rank ? t->get : t->give, n, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
  case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
  case GATHER: MPI_Gather(t->give, n, MPI_FLOAT, t->get, n, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
  case SCATTER: MPI_Scatter(t->give, n, MPI_FLOAT, t->get, n, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
  case ALLGATHER: MPI_Allgather(t->give, n, MPI_FLOAT, t->get, n, MPI_FLOAT, MPI_COMM_WORLD); break;
  case ALLTOALL: MPI_Alltoall(t->give, n, MPI_FLOAT, t->get, n, MPI_FLOAT, MPI_COMM_WORLD); break;
  case REDUCE_SCATTER: MPI_Reduce_scatter_block(t->give, t->get, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
  default: MPI_Scan(t->give, t->get, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
}

static float given(const struct task *t, int rank, size_t i) { return (float)((i + (size_t)(rank + t->salt)) % TURN_PERIOD); }

static float summed(const struct task *t, size_t i, int ranks) {
  float s = 0;
  for (int r = 0; r < ranks; r++) s += given(t, r, i);
  return s;
}

static int right(const struct task *t) {
  size_t n = t->each, base = (size_t)t->rank * n;
  if (t->of == BARRIER || (t->rank && (t->of == REDUCE || t->of == GATHER)) || (!t->rank && t->of == BROADCAST)) return 1;
  for (size_t i = 0; i < t->out; i++) {
    float want;
    switch (t->of) {
    case BROADCAST: want = given(t, 0, i); break;
    case SCATTER: want = given(t, 0, base + i); break;
    case GATHER: case ALLGATHER: want = given(t, (int)(i / n), i % n); break;
    case ALLTOALL: want = given(t, (int)(i / n), base + i % n); break;
    case REDUCE_SCATTER: want = summed(t, base + i, t->ranks); break;
    case SCAN: want = summed(t, i, t->rank + 1); break;
    default: want = summed(t, i, t->ranks);
    }
    if (t->get[i] != want) return 0;
  }
  return 1;
}

static void fill(struct task *t, int salt) {
  t->salt = salt;
  turn_fill(t->give, t->in, t->rank, salt);
}

static void play(struct turns *to, const struct turn *turn, int rank, int ranks) {
  struct task t = {collective(turn->variant), rank, ranks, 0, turn->count, turn->count, turn->count, NULL, NULL};
  int64_t *times = vector((size_t)turn->iterations * sizeof *times);
  struct rusage from, until;
  int is_right = 1;
  switch (t.of) {
  case GATHER: t.out *= (size_t)ranks; break;
  case SCATTER: t.in *= (size_t)ranks; break;
  case ALLGATHER: t.in = t.each = turn->count / (size_t)ranks; t.out = t.in * (size_t)ranks; break;
  case ALLTOALL: t.in = t.out = t.each * (size_t)ranks; break;
  case REDUCE_SCATTER: t.out = t.each = turn->count / (size_t)ranks; t.in = t.out * (size_t)ranks; break;
  }
  t.give = vector(t.in * sizeof(float));
  t.get = vector(t.out * sizeof(float));
  fill(&t, 0);
  for (int i = 0; i < turn->warmup; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    run(&t);
  }
  if (turn->warmup) is_right = right(&t);
  fill(&t, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  from = turn_usage();
  for (int i = 0; i < turn->iterations; i++) {
    int64_t begun;
    MPI_Barrier(MPI_COMM_WORLD);
    begun = turn_now();
    run(&t);
    times[i] = turn_now() - begun;
  }
  until = turn_usage();
  is_right = is_right && right(&t);
  turn_done(to, is_right, &from, &until, times, turn->iterations);
  free(t.give);
  free(t.get);
  free(times);
}

int main(int argc, char **argv) {
  struct turns turns;
  struct turn t;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  if (argc != 2) {
    fprintf(stderr, "usage: collectives_mpi SOCKET\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  turns = turn_join(argv[1], rank);
  while (turn_next(&turns, &t)) play(&turns, &t, rank, ranks);
  MPI_Finalize();
  return 0;
}
