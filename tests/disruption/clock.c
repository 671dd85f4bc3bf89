/* A wall clock that is wrong, for the process that loads this by LD_PRELOAD.
 *
 * The file that WEIR_CLOCK_FILE names holds by how many seconds, such as -3600; it is looked at
 * again every tenth of a second. Only the wall clock is moved, as a person or a time server
 * moves it: the steady clock goes on. Whoever waits until an instant of the wall clock has
 * reckoned it by the moved one, so it is moved back before the kernel sees it. An instant of the
 * steady clock, which counts from the machine's start, is less than thirty years and left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_NS 100000000LL
#define THIRTY_YEARS_S 1000000000LL

/* What stands behind a name; found at its first use, which may come before any constructor. */
#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int read_clock(clockid_t which, struct timespec *at) {
  REAL(clock_gettime);
  return real(which, at);
}

static long long wrong_by_s(void) {
  static long long by_s, looked_ns;
  struct timespec now;
  read_clock(CLOCK_MONOTONIC_COARSE, &now);
  long long now_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
  long long before_ns = __atomic_load_n(&looked_ns, __ATOMIC_ACQUIRE);
  if (!before_ns || now_ns - before_ns > LOOK_EVERY_NS) {
    const char *path = getenv("WEIR_CLOCK_FILE");
    char text[32];
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    /* Nothing to read while it is being written: it stays as it was. */
    if (length > 0) {
      text[length] = 0;
      __atomic_store_n(&by_s, atoll(text), __ATOMIC_RELEASE);
    }
    __atomic_store_n(&looked_ns, now_ns, __ATOMIC_RELEASE);
  }
  return __atomic_load_n(&by_s, __ATOMIC_ACQUIRE);
}

static struct timespec back(const struct timespec *until) {
  struct timespec at = *until;
  if (at.tv_sec > THIRTY_YEARS_S) at.tv_sec -= wrong_by_s();
  return at;
}

int clock_gettime(clockid_t which, struct timespec *at) {
  int failed = read_clock(which, at);
  if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    at->tv_sec += wrong_by_s();
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  REAL(gettimeofday);
  int failed = real(at, zone);
  if (!failed) at->tv_sec += wrong_by_s();
  return failed;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
  return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, at) ? base : 0;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  REAL(pthread_cond_timedwait);
  struct timespec at = back(until);
  return real(cond, mutex, &at);
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex,
                  const struct timespec *restrict until) {
  REAL(cnd_timedwait);
  struct timespec at = back(until);
  return real(cond, mutex, &at);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
  REAL(sem_timedwait);
  struct timespec at = back(until);
  return real(semaphore, &at);
}
