#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct mounted {
    const char *type, *where, *options;
    int needed;
} mounted;

/* The root file system is in memory, so nothing is mounted over /tmp and /run, where the image may have files. */
static void mount_all(void) {
    static const mounted all[] = {
        {"proc", "/proc", "", 1},
        {"sysfs", "/sys", "", 1},
        {"devtmpfs", "/dev", "", 1},
        {"devpts", "/dev/pts", "ptmxmode=0666", 0},
        {"tmpfs", "/dev/shm", "mode=1777", 0},
        {"debugfs", "/sys/kernel/debug", "", 0},
        {"tracefs", "/sys/kernel/tracing", "", 0},
        {"cgroup2", "/sys/fs/cgroup", "", 0},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        mkdir(all[i].where, 0755);
        if (mount(all[i].type, all[i].where, all[i].type, 0, all[i].options) != 0 && errno != EBUSY && all[i].needed)
            nw_fail("cannot mount %s: %s", all[i].where, strerror(errno));
    }
}

/* Opens the standard files, which the kernel could not do without /dev, and makes the links that programs expect. */
static void open_standard_files(void) {
    int console = open("/dev/console", O_RDWR | O_NOCTTY);
    for (int file = 0; console >= 0 && file < 3; file++)
        if (file != console)
            dup2(console, file);
    if (console > 2)
        close(console);
    symlink("/proc/self/fd", "/dev/fd");
    symlink("/proc/self/fd/0", "/dev/stdin");
    symlink("/proc/self/fd/1", "/dev/stdout");
    symlink("/proc/self/fd/2", "/dev/stderr");
}

static void loopback_up(void) {
    struct ifreq request = {.ifr_name = "lo"};
    int network = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (network < 0)
        return;
    if (ioctl(network, SIOCGIFFLAGS, &request) == 0) {
        request.ifr_flags |= IFF_UP;
        ioctl(network, SIOCSIFFLAGS, &request);
    }
    close(network);
}

/* The disk that the machine may have. Its driver finds it some time after the start. */
static void mount_disk(void) {
    enum { TRIES = 1000 };
    static const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    if (!getenv("nodewise_disk"))
        return;
    unsetenv("nodewise_disk");
    mkdir("/disk", 0755);
    for (int tries = 0; mount("/dev/nvme0n1", "/disk", "ext4", 0, "") != 0; tries++) {
        if (tries == TRIES)
            nw_fail("cannot mount the disk: %s", strerror(errno));
        nanosleep(&pause, NULL);
    }
    chmod("/disk", 01777);
}

int main(void) {
    uint64_t up = nw_clock(CLOCK_BOOTTIME);
    mount_all();
    mkdir("/tmp", 0777);
    chmod("/tmp", 01777);
    mkdir("/run", 0755);
    open_standard_files();
    nw_ports_open();
    nw_say("ready %llu", (unsigned long long)up);
    loopback_up();
    mount_disk();
    sethostname("nodewise", 8);
    umask(022);
    nw_plan *plan = nw_plan_read();
    nw_calibrate();
    for (int number = 0; number < plan->runs; number++)
        nw_command_run(plan, number);
    for (int number = 0; number < plan->brought; number++)
        nw_bring(plan->bring[number]);
    if (plan->capture)
        nw_capture();
    nw_say("done");
    nw_power_off();
}
