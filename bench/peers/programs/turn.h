/* The side of a rank in bench/turn: it joins over a Unix socket, and
 * then measures whenever it is asked to, so that several implementations can
 * take turns on one fabric. Between turns it blocks in a read. */
#ifndef TRIBUTARY_TURN_H
#define TRIBUTARY_TURN_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct turn {
  char variant[32]; /* of the algorithm */
  size_t count;     /* floats of the vector */
  int warmup, iterations;
};

struct turns {
  FILE *in, *out;
};

static inline void turn_fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static inline struct turns turn_join(const char *path, int rank) {
  struct sockaddr_un at;
  struct turns t;
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  memset(&at, 0, sizeof at);
  at.sun_family = AF_UNIX;
  snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0) turn_fail(path);
  t.in = fdopen(fd, "r");
  t.out = fdopen(dup(fd), "w");
  if (!t.in || !t.out) turn_fail(path);
  fprintf(t.out, "rank %d\n", rank);
  fflush(t.out);
  return t;
}

/* Waits for the next turn; 0: there is none any more. */
static inline int turn_next(struct turns *t, struct turn *next) {
  size_t bytes;
  if (fscanf(t->in, " run %31s %zu %d %d", next->variant, &bytes, &next->warmup, &next->iterations) != 4) return 0;
  next->count = bytes / sizeof(float);
  return 1;
}

static inline int64_t turn_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline struct rusage turn_usage(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used;
}

static inline int64_t turn_ns(struct timeval from, struct timeval to) {
  return ((int64_t)(to.tv_sec - from.tv_sec) * 1000000 + (to.tv_usec - from.tv_usec)) * 1000;
}

static inline void turn_done(struct turns *t, int right, const struct rusage *from, const struct rusage *to,
                             const int64_t *times, int n) {
  fprintf(t->out, "done %s - %" PRId64 " %" PRId64, right ? "right" : "wrong", turn_ns(from->ru_utime, to->ru_utime),
          turn_ns(from->ru_stime, to->ru_stime));
  for (int i = 0; i < n; i++) fprintf(t->out, " %" PRId64, times[i]);
  fputc('\n', t->out);
  fflush(t->out);
}

/* Vectors of small whole numbers that differ by rank, place and salt; their
 * sums are exact. */
enum { TURN_PERIOD = 5 };

static inline void turn_fill(float *v, size_t count, int rank, int salt) {
  for (size_t i = 0; i < count; i++) v[i] = (float)((i + (size_t)(rank + salt)) % TURN_PERIOD);
}

static inline int turn_right(const float *v, size_t count, int ranks, int salt) {
  for (size_t i = 0; i < count; i++) {
    size_t want = 0;
    for (int r = 0; r < ranks; r++) want += (i + (size_t)(r + salt)) % TURN_PERIOD;
    if (v[i] != (float)want) return 0;
  }
  return 1;
}

#endif
