/* The host's channels. Virtio ports are fast, but are modules in Debian's kernel; the driver of serial
 * cards is built in. Both take splice(2). */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

enum { PORTS = 3, TTYS = 64, PATIENCE_MS = 5000 };

int nw_control = STDERR_FILENO, nw_output = STDOUT_FILENO, nw_errors = STDERR_FILENO;

static int serial;

void nw_power_off(void) {
    nw_ports_drain();
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

static void write_all(const char *bytes, uint64_t count) {
    while (count > 0) {
        ssize_t written = write(nw_control, bytes, count);
        if (written < 0 && errno != EINTR)
            return;
        bytes += written > 0 ? written : 0;
        count -= written > 0 ? (uint64_t)written : 0;
    }
}

static void say(const char *before, const char *format, va_list arguments) {
    char line[1024];
    int at = snprintf(line, sizeof line, "%s", before);
    int length = vsnprintf(line + at, sizeof line - (size_t)at - 1, format, arguments);
    length = length < (int)sizeof line - at - 1 ? at + length : (int)sizeof line - 2;
    line[length] = '\n';
    write_all(line, (uint64_t)length + 1);
}

void nw_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

void nw_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("failed ", format, arguments);
    va_end(arguments);
    nw_power_off();
}

void nw_send(const char *kind, const char *name, const void *bytes, uint64_t count) {
    nw_say("%s %s %llu", kind, name, (unsigned long long)count);
    write_all(bytes, count);
}

void nw_send_file(const char *kind, const char *name, const char *path) {
    static char piece[1 << 16];
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0)
        return;
    uint64_t left = (uint64_t)status.st_size;
    nw_say("%s %s %llu", kind, name, (unsigned long long)left);
    while (left > 0) {
        ssize_t got = read(file, piece, left < sizeof piece ? left : sizeof piece);
        if (got <= 0)
            nw_fail("%s became shorter while it was sent", path);
        write_all(piece, (uint64_t)got);
        left -= (uint64_t)got;
    }
    close(file);
}

void nw_ports_drain(void) {
    if (serial) {
        tcdrain(nw_output);
        tcdrain(nw_errors);
        tcdrain(nw_control);
    }
}

static int load(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "/lab/modules/%s.ko", name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    long status = syscall(SYS_finit_module, file, "", 0);
    close(file);
    return status == 0 || errno == EEXIST ? 0 : -1;
}

static int open_virtio(const char *name) {
    char path[300];
    DIR *all = opendir("/sys/class/virtio-ports");
    int port = -1;
    for (struct dirent *entry; all && port < 0 && (entry = readdir(all));) {
        snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", entry->d_name);
        char *text = entry->d_name[0] == '.' ? NULL : nw_read_text(path, NULL);
        if (!text || strncmp(text, name, strlen(name)) != 0)
            continue;
        snprintf(path, sizeof path, "/dev/%s", entry->d_name);
        port = open(path, O_WRONLY | O_CLOEXEC);
    }
    if (all)
        closedir(all);
    return port;
}

/* The driver makes the ports one after the other, in its own time. */
static int await_virtio(const char *name) {
    for (int i = 0; i < PATIENCE_MS; i++) {
        int port = open_virtio(name);
        if (port >= 0)
            return port;
        usleep(1000);
    }
    return -1;
}

static int use_virtio(void) {
    static const char *const modules[] = {"virtio_ring", "virtio", "virtio_pci_legacy_dev",
                                          "virtio_pci_modern_dev", "virtio_pci", "virtio_console"};
    for (unsigned i = 0; i < sizeof modules / sizeof *modules; i++)
        if (load(modules[i]) != 0)
            return -1;
    nw_control = await_virtio("control");
    nw_output = await_virtio("output");
    nw_errors = await_virtio("errors");
    return nw_control >= 0 && nw_output >= 0 && nw_errors >= 0 ? 0 : -1;
}

static int on_pci(int tty) {
    char path[64], device[PATH_MAX];
    snprintf(path, sizeof path, "/sys/class/tty/ttyS%d/device", tty);
    return realpath(path, device) && strstr(device, "/pci") != NULL;
}

static int open_raw(int tty) {
    char path[32];
    struct termios how;
    snprintf(path, sizeof path, "/dev/ttyS%d", tty);
    int port = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (port < 0 || tcgetattr(port, &how) != 0)
        return -1;
    cfmakeraw(&how);
    cfsetspeed(&how, B115200);
    how.c_cflag |= CLOCAL;
    return tcsetattr(port, TCSANOW, &how) == 0 ? port : -1;
}

static int use_serial(void) {
    int ports[PORTS], found = 0;
    for (int tty = 0; tty < TTYS && found < PORTS; tty++)
        if (on_pci(tty) && (ports[found] = open_raw(tty)) >= 0)
            found++;
    if (found < PORTS)
        return -1;
    nw_control = ports[0];
    nw_output = ports[1];
    nw_errors = ports[2];
    serial = 1;
    return 0;
}

void nw_ports_open(void) {
    if (use_virtio() == 0 || use_serial() == 0)
        return;
    nw_control = nw_output = nw_errors = STDERR_FILENO;
    nw_fail("no ports to the host");
}
