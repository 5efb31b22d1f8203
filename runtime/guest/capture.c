/* Sends what sysfs shows of nodes and CPUs, up to some limits: a test fixture for hosts without such a machine. */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MOST = 1 << 16, FILES_MOST = 20000, DEPTH_MOST = 8 };

static int files;

/* Entries that say nothing about where memory and CPUs are. */
static int is_noise(const char *name) {
    static const char *const noise[] = {"power",   "uevent",           "vulnerabilities", "cpufreq",
                                        "cpuidle", "microcode",        "hotplug",         "crash_hotplug",
                                        "smt",     "thermal_throttle", "compact"};
    for (unsigned i = 0; i < sizeof noise / sizeof *noise; i++)
        if (strcmp(name, noise[i]) == 0)
            return 1;
    return name[0] == '.' || strncmp(name, "crash_notes", 11) == 0;
}

static void walk(const char *path, int depth) {
    struct stat status;
    uint64_t bytes;
    if (lstat(path, &status) != 0 || files >= FILES_MOST)
        return;
    if (S_ISREG(status.st_mode)) {
        char *text = status.st_mode & S_IRUSR ? nw_read_text(path, &bytes) : NULL;
        if (text && bytes <= FILE_MOST && ++files)
            nw_send("capture", path + strlen("/sys/"), text, bytes);
        return;
    }
    DIR *folder = S_ISDIR(status.st_mode) && depth < DEPTH_MOST ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char below[512];
        if (!is_noise(entry->d_name) && snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below)
            walk(below, depth + 1);
    }
    if (folder)
        closedir(folder);
}

void nw_capture(void) {
    walk("/sys/devices/system/node", 0);
    walk("/sys/devices/system/cpu", 0);
}
