/*
 * The wall clock of one server, as a file says: preloaded into the server, which then sees this
 * time from gettimeofday, clock_gettime(CLOCK_REALTIME[_COARSE]) and time. The server's own timers
 * run on a monotonic clock, which is left alone, but for its start: see clock_gettime below.
 *
 * The file named by TENURE_CLOCK_FILE, 40 bytes in native order:
 *
 *     byte  0       generation; its lowest bit says which slot counts
 *     bytes 8..24   slot 0: mode, value in microseconds
 *     bytes 24..40  slot 1: the same
 *
 * Mode 0: real time plus the value. Mode 1: the clock stands at the value.
 *
 * The writer fills the slot that does not count and then moves on the generation, a single byte
 * which cannot tear. A reader that finds the generation moved after it read its slot tries again.
 *
 * The first call may come from within an allocator or before libc is ready: so the file is mapped
 * at the first use by bare system calls, and nothing here allocates or takes a lock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct slot {
    _Atomic int64_t mode;
    _Atomic int64_t value_us;
};

struct clock_file {
    _Atomic uint8_t generation;
    uint8_t unused[7];
    struct slot slots[2];
};

static const struct clock_file real_time; /* generation 0, mode 0, value 0 */
static _Atomic(const struct clock_file *) mapped;

static const struct clock_file *clock_file(void) {
    const struct clock_file *file = atomic_load(&mapped);
    if (file)
        return file;
    file = &real_time;
    const char *path = getenv("TENURE_CLOCK_FILE");
    if (path) {
        long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
        if (fd >= 0) {
            long at = syscall(SYS_mmap, 0L, sizeof *file, PROT_READ, MAP_SHARED, fd, 0L);
            syscall(SYS_close, fd);
            if (at != -1)
                file = (const struct clock_file *)at;
        }
    }
    /* Two threads that come here at once map it twice, which does no harm. */
    atomic_store(&mapped, file);
    return file;
}

static int64_t wall_us(void) {
    const struct clock_file *file = clock_file();
    for (;;) {
        uint8_t generation = atomic_load(&file->generation);
        const struct slot *slot = &file->slots[generation & 1];
        int64_t mode = atomic_load(&slot->mode);
        int64_t value_us = atomic_load(&slot->value_us);
        if (atomic_load(&file->generation) != generation)
            continue;
        if (mode == 1)
            return value_us;
        struct timespec now;
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + value_us;
    }
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
    (void)tz;
    int64_t us = wall_us();
    tv->tv_sec = us / 1000000;
    tv->tv_usec = us % 1000000;
    return 0;
}

/*
 * The server's pointer to its monotonic clock, null until it has chosen one; absent in programs
 * that are no server.
 *
 * Valkey 9.1 measures the processor's counter against CLOCK_MONOTONIC, and once it trusts the
 * counter it asks for the wall clock only every millisecond and adds up ticks in between: a clock
 * that stands would go on. So until it has chosen, CLOCK_MONOTONIC stands still; the measurement
 * fails, and the server settles for clock_gettime.
 */
extern uint64_t (*getMonotonicUs)(void) __attribute__((weak));

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_MONOTONIC && &getMonotonicUs && !getMonotonicUs) {
        static struct timespec start; /* the server has one thread yet */
        if (start.tv_sec == 0)
            syscall(SYS_clock_gettime, clock, &start);
        *now = start;
        return 0;
    }
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, now);
    int64_t us = wall_us();
    now->tv_sec = us / 1000000;
    now->tv_nsec = us % 1000000 * 1000;
    return 0;
}

time_t time(time_t *out) {
    time_t now = wall_us() / 1000000;
    if (out)
        *out = now;
    return now;
}
