/* Messages of MPI between two ranks.
 *
 *   messages_mpi latency BYTES WARMUP ITERATIONS
 *   messages_mpi bandwidth BYTES WARMUP ITERATIONS WINDOW
 *
 * Rank 0 writes half of each round trip in ns, or the bit/s of a stream of messages of
 * which WINDOW are under way at once, and "right" or "wrong" before it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENDER, RECEIVER };

static void *memory(size_t n) {
  void *p = malloc(n ? n : 1);
  if (!p) {
    fprintf(stderr, "no memory for %zu bytes\n", n);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return p;
}

static void pass(int rank, const void *out, void *in, int bytes) {
  if (rank == SENDER) {
    MPI_Send(out, bytes, MPI_BYTE, RECEIVER, 0, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, RECEIVER, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in, bytes, MPI_BYTE, SENDER, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(in, bytes, MPI_BYTE, SENDER, 0, MPI_COMM_WORLD);
  }
}

static void latency(int rank, int bytes, int warmup, int iterations) {
  unsigned char *out = memory((size_t)bytes), *in = memory((size_t)bytes);
  double *times = memory((size_t)iterations * sizeof *times);
  for (int i = 0; i < bytes; i++) out[i] = (unsigned char)(i * 7 + i / 256);
  memset(in, 0, (size_t)bytes);
  for (int i = 0; i < warmup; i++) pass(rank, out, in, bytes);
  for (int i = 0; i < iterations; i++) {
    double begun = MPI_Wtime();
    pass(rank, out, in, bytes);
    times[i] = (MPI_Wtime() - begun) / 2;
  }
  if (rank == SENDER) {
    printf("%s", memcmp(in, out, (size_t)bytes) ? "wrong" : "right");
    for (int i = 0; i < iterations; i++) printf(" %.0f", times[i] * 1e9);
    putchar('\n');
  }
}

static void post(int rank, void *b, int bytes, MPI_Request *r) {
  if (rank == SENDER)
    MPI_Isend(b, bytes, MPI_BYTE, RECEIVER, 0, MPI_COMM_WORLD, r);
  else
    MPI_Irecv(b, bytes, MPI_BYTE, SENDER, 0, MPI_COMM_WORLD, r);
}

static void bandwidth(int rank, int bytes, int warmup, int iterations, int window) {
  unsigned char **b = memory((size_t)window * sizeof *b);
  MPI_Request *under = memory((size_t)window * sizeof *under);
  double begun = 0, took;
  char end = 0;
  for (int i = 0; i < window; i++) {
    b[i] = memory((size_t)bytes);
    memset(b[i], i + 1, (size_t)bytes);
    under[i] = MPI_REQUEST_NULL;
  }
  for (int i = 0; i < warmup + iterations; i++) {
    if (i == warmup) {
      MPI_Waitall(window, under, MPI_STATUSES_IGNORE);
      MPI_Barrier(MPI_COMM_WORLD);
      begun = MPI_Wtime();
    }
    MPI_Wait(&under[i % window], MPI_STATUS_IGNORE);
    post(rank, b[i % window], bytes, &under[i % window]);
  }
  MPI_Waitall(window, under, MPI_STATUSES_IGNORE);
  if (rank == SENDER) /* the time ends when the receiver has all */
    MPI_Recv(&end, 1, MPI_BYTE, RECEIVER, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(&end, 1, MPI_BYTE, SENDER, 1, MPI_COMM_WORLD);
  took = MPI_Wtime() - begun;
  if (rank == SENDER) printf("right %.0f\n", 8.0 * bytes * iterations / took);
}

int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 2 && argc == 5 && !strcmp(argv[1], "latency")) {
    latency(rank, atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
  } else if (ranks == 2 && argc == 6 && !strcmp(argv[1], "bandwidth")) {
    bandwidth(rank, atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
  } else {
    fprintf(stderr, "usage, of 2 ranks: messages_mpi latency|bandwidth BYTES WARMUP ITERATIONS [WINDOW]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return 0;
}
