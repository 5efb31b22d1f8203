#define _GNU_SOURCE
#include "observer.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>

#define MODULES 1024

static struct {
    uintptr_t bias;
    const ElfW(Phdr) *headers;
} known[MODULES];
static size_t modules;
static int dlopen_called;
static unsigned long long additions;

static bool is_known(const struct dl_phdr_info *info)
{
    for (size_t i = 0; i < modules; i++)
        if (known[i].bias == info->dlpi_addr && known[i].headers == info->dlpi_phdr)
            return true;
    return false;
}

static void log_module(const struct dl_phdr_info *info, const char *path)
{
    nw_line line = {0};
    nw_line_begin(&line, "module");
    nw_line_number(&line, info->dlpi_addr);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        nw_line_number(&line, info->dlpi_addr + segment->p_vaddr);
        nw_line_number(&line, segment->p_memsz);
        nw_line_number(&line, segment->p_flags);
    }
    nw_line_text(&line, "=");
    nw_line_text(&line, path);
    nw_event(&line);
}

/* Libraries opened by a relative path are known by it: the recorder is elsewhere. */
static const char *absolute(const char *path, char *room, size_t bytes)
{
    if (path == NULL || path[0] == '/' || strchr(path, '/') == NULL)
        return path; /* without a slash: the kernel's own */
    long length = nw_system(SYS_getcwd, room, bytes);
    if (length <= 0 || (size_t)length + strlen(path) + 1 > bytes)
        return NULL;
    stpcpy(stpcpy(room + length - 1, "/"), path);
    return room;
}

static int visit(struct dl_phdr_info *info, size_t size, void *opaque)
{
    (void)size;
    bool *first = opaque; /* the executable, which has no name here */
    char room[1024];
    const char *path;
    if (*first) {
        long length = nw_system(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", room, sizeof room - 1);
        room[length < 0 ? 0 : length] = 0;
        path = room;
    } else {
        path = absolute(info->dlpi_name, room, sizeof room);
    }
    *first = false;
    additions = info->dlpi_adds;
    if (modules < MODULES && path != NULL && path[0] == '/' && !is_known(info)) {
        known[modules].bias = info->dlpi_addr;
        known[modules++].headers = info->dlpi_phdr;
        log_module(info, path);
        if (nw_emulated())
            nw_outlined_scan(path, info->dlpi_addr);
    }
    return 0;
}

void nw_modules_scan(void)
{
    static int scanning;
    if (__atomic_exchange_n(&scanning, 1, __ATOMIC_ACQUIRE))
        return;
    bool first = true;
    dl_iterate_phdr(visit, &first);
    __atomic_store_n(&scanning, 0, __ATOMIC_RELEASE);
}

void nw_modules_check(void)
{
    if (nw_unlikely(__atomic_load_n(&dlopen_called, __ATOMIC_RELAXED)) && nw_recording() &&
        __atomic_exchange_n(&dlopen_called, 0, __ATOMIC_ACQUIRE))
        nw_modules_scan();
}

/* A name without a slash is looked up on behalf of the caller (its RUNPATH), whom libc knows by the
 * return address: then the real one must be jumped to, and the scan comes later. */
NW_EXPORT void *dlopen(const char *path, int flags)
{
    static __typeof__(&dlopen) next;
    if (next == NULL)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "dlopen");
    if (path == NULL || strchr(path, '/') == NULL) {
        __atomic_store_n(&dlopen_called, 1, __ATOMIC_RELEASE);
        __attribute__((musttail)) return next(path, flags);
    }
    void *handle = next(path, flags);
    if (handle != NULL && nw_recording())
        nw_modules_scan();
    return handle;
}
