/* The channels to the host: three ports of a serial card, whose driver is built into Debian's kernel. Virtio
 * ports are faster, but their driver is a module. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { PORTS = 3, TTYS = 64 };

int nw_control = STDERR_FILENO, nw_output = STDOUT_FILENO, nw_errors = STDERR_FILENO;

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
    static char line[1024];
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
    tcdrain(nw_output);
    tcdrain(nw_errors);
    tcdrain(nw_control);
}

static int on_pci(int tty) {
    static char device[PATH_MAX];
    char path[64];
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

void nw_ports_open(void) {
    int ports[PORTS], found = 0;
    for (int tty = 0; tty < TTYS && found < PORTS; tty++)
        if (on_pci(tty) && (ports[found] = open_raw(tty)) >= 0)
            found++;
    if (found < PORTS)
        nw_fail("no ports to the host");
    nw_control = ports[0];
    nw_output = ports[1];
    nw_errors = ports[2];
}
