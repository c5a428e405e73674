// What package recovery measures of Tributary, of an MPI with ULFM (Open MPI 5: mpirun --with-ft ulfm).
//
//	revoke_mpi plans COLLECTIVE BYTES ROUNDS    COLLECTIVE: allreduce, barrier or broadcast
//	revoke_mpi agree TURNS
//	revoke_mpi kill RANK FILE                   FILE is shared by all ranks
//
// Rank 0, or the lowest that lives, writes a line for each round, with times in ms.
#include <mpi.h>

#include <fcntl.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { after = 5, operations = 20 };

static int rank, size;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void must(int err, const char *what) {
    if (err != MPI_SUCCESS) {
        fprintf(stderr, "rank %d: %s: error %d\n", rank, what, err);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// worst returns the largest value of all members.
static long long worst(MPI_Comm comm, long long own) {
    long long all = 0;
    must(MPI_Allreduce(&own, &all, 1, MPI_LONG_LONG, MPI_MAX, comm), "a maximum");
    return all;
}

static int operate(MPI_Comm comm, const char *collective, long long *v, long long *sum, int n) {
    if (strcmp(collective, "barrier") == 0) return MPI_Barrier(comm);
    if (strcmp(collective, "broadcast") == 0) return MPI_Bcast(v, n, MPI_LONG_LONG, 0, comm);
    for (int i = 0; i < n; i++) v[i] = rank;
    int err = MPI_Allreduce(v, sum, n, MPI_LONG_LONG, MPI_SUM, comm);
    if (err == MPI_SUCCESS && sum[n - 1] != size * (size - 1LL) / 2) must(MPI_ERR_OTHER, "the sum");
    return err;
}

static void plans(MPI_Comm b, const char *collective, int bytes, int rounds) {
    int n = bytes / 8;
    long long *v = calloc(n, 8), *sum = calloc(n, 8);
    for (int round = 0; round < 2 * rounds; round++) {
        int revoker = round % 2 ? (7 * (round / 2) + 1) % size : -1, err = MPI_SUCCESS;
        long long revoked = 0, interrupted = 0, slowest[after], last[after];
        MPI_Comm a;
        must(MPI_Comm_dup(b, &a), "a duplicate");
        must(MPI_Comm_set_errhandler(a, MPI_ERRORS_RETURN), "a handler");
        must(MPI_Barrier(b), "a barrier");
        for (int i = 0; i < operations && err == MPI_SUCCESS; i++) {
            if (rank == revoker && i == operations - 1) {
                revoked = now();
                must(MPIX_Comm_revoke(a), "a revoke");
            }
            err = operate(a, collective, v, sum, n);
        }
        // Who only sends may be through with all of its operations.
        for (int is = 0; revoker >= 0 && err == MPI_SUCCESS && !is;) {
            MPI_Status s;
            must(MPI_Iprobe(MPI_ANY_SOURCE, 0, b, &is, &s), "progress");
            must(MPIX_Comm_is_revoked(a, &is), "a question");
        }
        if (revoker >= 0) interrupted = now();
        else must(err, "plan A");
        for (int k = 0; k < after; k++) {
            slowest[k] = now();
            must(operate(b, collective, v, sum, n), "plan B");
            last[k] = now();
        }
        revoked = worst(b, revoked);
        interrupted = worst(b, interrupted);
        if (rank == 0) printf("%s %s %d %.3f", revoker < 0 ? "free" : "revoked", collective, bytes, (interrupted - revoked) / 1e6);
        for (int k = 0; k < after; k++) {
            long long own = worst(b, last[k] - slowest[k]), shared = worst(b, last[k]) - worst(b, slowest[k]);
            if (rank == 0) printf(" %.3f/%.3f", own / 1e6, shared / 1e6);
        }
        if (rank == 0) printf("\n");
        MPI_Comm_free(&a);
    }
}

static void agree(MPI_Comm b, int turns) {
    for (int i = 0; i < turns; i++) {
        int flags = ~(1 << rank % 32);
        long long v = rank, sum;
        must(MPI_Barrier(b), "a barrier");
        long long begun = now();
        must(MPIX_Comm_agree(b, &flags), "an agreement");
        long long agreed = now() - begun;
        must(MPI_Barrier(b), "a barrier");
        begun = now();
        must(MPI_Allreduce(&v, &sum, 1, MPI_LONG_LONG, MPI_SUM, b), "an allreduce");
        long long reduced = now() - begun;
        agreed = worst(b, agreed);
        reduced = worst(b, reduced);
        if (rank == 0) printf("agree %.3f %.3f\n", agreed / 1e6, reduced / 1e6);
    }
}

static void fall(MPI_Comm b, int dead, const char *file) {
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8) != 0) must(MPI_ERR_OTHER, "the shared file");
    volatile long long *killed = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    long long v = rank, sum, until = now() + 300000000LL;
    must(MPI_Barrier(b), "a barrier");
    while (MPI_Allreduce(&v, &sum, 1, MPI_LONG_LONG, MPI_SUM, b) == MPI_SUCCESS) {
        if (rank == dead && now() > until) {
            *killed = now();
            raise(SIGKILL);
        }
    }
    long long failed = now();
    MPIX_Comm_revoke(b);
    MPI_Comm smaller;
    must(MPIX_Comm_shrink(b, &smaller), "a shrink");
    long long shrunk = now();
    must(MPI_Allreduce(&v, &sum, 1, MPI_LONG_LONG, MPI_SUM, smaller), "the first operation");
    long long first = now();
    if (sum != size * (size - 1LL) / 2 - dead) must(MPI_ERR_OTHER, "the survivors' sum");
    long long earliest = -worst(smaller, -failed);
    failed = worst(smaller, failed), shrunk = worst(smaller, shrunk), first = worst(smaller, first);
    int own;
    MPI_Comm_rank(smaller, &own);
    if (own == 0)
        printf("kill %d detection %.3f revoke %.3f shrink %.3f first %.3f all %.3f\n", dead, (earliest - *killed) / 1e6, (failed - earliest) / 1e6,
               (shrunk - failed) / 1e6, (first - shrunk) / 1e6, (first - *killed) / 1e6);
    fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm b;
    must(MPI_Comm_dup(MPI_COMM_WORLD, &b), "a duplicate");
    MPI_Comm_set_errhandler(b, MPI_ERRORS_RETURN);
    if (argc == 5 && strcmp(argv[1], "plans") == 0) plans(b, argv[2], atoi(argv[3]), atoi(argv[4]));
    else if (argc == 3 && strcmp(argv[1], "agree") == 0) agree(b, atoi(argv[2]));
    else if (argc == 4 && strcmp(argv[1], "kill") == 0) fall(b, atoi(argv[2]), argv[3]);
    else must(MPI_ERR_ARG, "the arguments");
    MPI_Finalize();
    return 0;
}
