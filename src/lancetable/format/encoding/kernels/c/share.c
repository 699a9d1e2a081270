/* A job is over in a few milliseconds, and on a busy machine a thread may get to run later than that.
 * So nobody waits for helpers to begin or to end: the caller does parts itself until none is left,
 * and waits for those only that a helper has begun. A helper that comes too late finds no part, and
 * the last one to leave frees the job. */

#include <stdint.h>
#include <stdlib.h>

#include "share.h"

#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>

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
                 int64_t threads) {
  job_t *job = threads > 1 && parts > 1 ? new_job(part, work, parts) : NULL;
  if (!job) {
    for (int64_t number = 0; number < parts; number++) part(work, number);
    return;
  }
  for (int64_t i = 0; i + 1 < threads && i + 1 < parts; i++) start_helper(job);
  do_parts(job);
  pthread_mutex_lock(&job->lock);
  while (__atomic_load_n(&job->done, __ATOMIC_ACQUIRE) < parts)
    pthread_cond_wait(&job->is_done, &job->lock);
  pthread_mutex_unlock(&job->lock);
  leave(job);
}

#else

void share_parts(void (*part)(void *work, int64_t number), void *work, int64_t parts,
                 int64_t threads) {
  (void)threads;
  for (int64_t number = 0; number < parts; number++) part(work, number);
}

#endif
