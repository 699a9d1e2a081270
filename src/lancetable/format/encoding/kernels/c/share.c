/* sched_getaffinity is not in the C standard. */
#define _GNU_SOURCE

/* A job is over in a few milliseconds, and on a busy machine a thread may get to run later than that.
 * So nobody waits for helpers to begin or to end: the caller does parts itself until none is left,
 * and waits for those only that a helper has begun. A helper that comes too late finds no part, and
 * the last one to leave frees the job. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "share.h"

#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#include <unistd.h>
#if defined(__linux__)
#include <fcntl.h>
#include <sched.h>
#endif

enum { MOST_HELPERS = 3 };

typedef struct {
  void (*part)(void *work, int64_t number);
  void *work;
  int64_t parts, next, done, users;
  pthread_mutex_t lock;
  pthread_cond_t is_done;
} job_t;

static void do_parts(job_t *job) {
  int64_t number;
  while ((number = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->parts) {
    job->part(job->work, number);
    if (__atomic_add_fetch(&job->done, 1, __ATOMIC_ACQ_REL) < job->parts) continue;
    pthread_mutex_lock(&job->lock);
    pthread_cond_signal(&job->is_done);
    pthread_mutex_unlock(&job->lock);
  }
}

static void leave(job_t *job) {
  if (__atomic_sub_fetch(&job->users, 1, __ATOMIC_ACQ_REL)) return;
  pthread_cond_destroy(&job->is_done);
  pthread_mutex_destroy(&job->lock);
  free(job);
}

static void *help(void *argument) {
  do_parts(argument);
  leave(argument);
  return NULL;
}

static void start_helper(job_t *job) {
  pthread_attr_t detached;
  pthread_t thread;
  if (pthread_attr_init(&detached)) return;
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  __atomic_add_fetch(&job->users, 1, __ATOMIC_RELAXED);
  if (pthread_create(&thread, &detached, help, job))
    __atomic_sub_fetch(&job->users, 1, __ATOMIC_RELAXED);
  pthread_attr_destroy(&detached);
}

static job_t *new_job(void (*part)(void *work, int64_t number), void *work, int64_t parts) {
  job_t *job = calloc(1, sizeof(job_t));
  if (!job) return NULL;
  job->part = part;
  job->work = work;
  job->parts = parts;
  job->users = 1;
  pthread_mutex_init(&job->lock, NULL);
  pthread_cond_init(&job->is_done, NULL);
  return job;
}

void share_parts(void (*part)(void *work, int64_t number), void *work, int64_t parts,
                 int64_t helpers) {
  job_t *job = helpers > 0 && parts > 1 ? new_job(part, work, parts) : NULL;
  if (!job) {
    for (int64_t number = 0; number < parts; number++) part(work, number);
    return;
  }
  for (int64_t i = 0; i < helpers && i + 1 < parts; i++) start_helper(job);
  do_parts(job);
  pthread_mutex_lock(&job->lock);
  while (__atomic_load_n(&job->done, __ATOMIC_ACQUIRE) < parts)
    pthread_cond_wait(&job->is_done, &job->lock);
  pthread_mutex_unlock(&job->lock);
  leave(job);
}

#if defined(__linux__)
/* How many threads of the whole machine want to run just now, the caller included. */
static int64_t running(void) {
  char text[128];
  const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (size <= 0) return 1;
  text[size] = 0;
  const char *number = strchr(text, '/'); /* 0.20 0.18 0.12 1/80 11206: one of eighty */
  while (number && number > text && number[-1] >= '0' && number[-1] <= '9') number--;
  return number ? strtoll(number, NULL, 10) : 1;
}
#endif

/* A helper that has to wait for a processor in the middle of a part makes the caller wait, too. So
 * there are none where everybody is busy. */
int64_t free_helpers(void) {
  int64_t idle;
#if defined(__linux__)
  cpu_set_t mine;
  CPU_ZERO(&mine);
  const int64_t processors = sched_getaffinity(0, sizeof mine, &mine) ? 1 : CPU_COUNT(&mine);
  idle = processors > 1 ? processors - running() : 0;
#else
  idle = sysconf(_SC_NPROCESSORS_ONLN) - 1;
#endif
  return idle < 0 ? 0 : idle < MOST_HELPERS ? idle : MOST_HELPERS;
}

#else

void share_parts(void (*part)(void *work, int64_t number), void *work, int64_t parts,
                 int64_t helpers) {
  (void)helpers;
  for (int64_t number = 0; number < parts; number++) part(work, number);
}

int64_t free_helpers(void) { return 0; }

#endif
