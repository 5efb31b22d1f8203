/* Memory that has a name, and that several processes may map: shared memory, memfds, System V segments, pools of huge
 * pages. A rule names it as `nodewise files` does: `shm:NAME`, `memfd:NAME`, `sysv:KEY`, `shared:`, `hugetlb:PATH`,
 * and `file:PATH` of any other tmpfs. Its policy is the object's where the kernel keeps one for it (tmpfs, so all but
 * huge pages), and holds for whoever touches a page first. Files on a disk are placed by `nodewise run` before the
 * program starts: their page cache follows no policy of a mapping. */
#define _GNU_SOURCE
#include "preload.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum {
    NAME = 512,
    KIND = 16, /* bytes of a name and of the kind before it; longer names have no rule */
    HUGE_PAGES = 512, /* pages of a huge page of 2 MiB */
};

typedef struct named {
    char name[NAME];
    nw_whole whole;
} named;

static uint64_t pages_of(uint64_t bytes) { return (bytes + nw_page_bytes - 1) >> nw_page_shift; }

/* The name of an open file of a tmpfs or of hugetlbfs, as the kernel shows it and as rules write it. */
static int name_of(int file, int huge, char out[NAME]) {
    static const struct {
        const char *prefix, *kind;
    } kinds[] = {{"/memfd:", "memfd:"}, {"/dev/shm/", "shm:"}};
    static const char deleted[] = " (deleted)";
    enum { SUFFIX = sizeof deleted - 1 };
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, out, NAME - KIND);
    if (length <= 0 || length == NAME - KIND)
        return 0;
    if (length > SUFFIX && memcmp(out + length - SUFFIX, deleted, SUFFIX) == 0)
        length -= SUFFIX;
    const char *kind = huge ? "hugetlb:" : "file:";
    size_t left_out = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t prefix = strlen(kinds[i].prefix);
        if ((size_t)length < prefix || memcmp(out, kinds[i].prefix, prefix) != 0)
            continue;
        kind = kinds[i].kind;
        left_out = prefix;
    }
    size_t begin = strlen(kind), rest = (size_t)length - left_out;
    memmove(out + begin, out + left_out, rest);
    memcpy(out, kind, begin);
    out[begin + rest] = 0;
    return 1;
}

/* A mapping of a file: 0 if it is on a disk, or what is not a file. A private mapping of a tmpfs has pages of the object
 * until they are written, and a policy for those written only. */
static int of_file(named *of, size_t bytes, int flags, int file, uint64_t offset) {
    struct stat status;
    struct statfs system;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || fstatfs(file, &system) != 0)
        return 0;
    int huge = system.f_type == HUGETLBFS_MAGIC;
    if ((system.f_type != TMPFS_MAGIC || (flags & MAP_TYPE) == MAP_PRIVATE) && !huge)
        return 0;
    uint64_t end = offset + bytes, size = (uint64_t)status.st_size;
    of->whole.before = offset >> nw_page_shift;
    of->whole.pages = pages_of(end > size ? end : size);
    of->whole.granule = huge ? (uint32_t)((uint64_t)system.f_bsize >> nw_page_shift) : 1;
    of->whole.phase = huge ? 0 : status.st_ino;
    return name_of(file, huge, of->name);
}

/* Pages of the huge pages that a mapping asks for, or of those of 2 MiB, which are the default nearly everywhere. */
static uint32_t huge_pages(int flags) {
    unsigned shift = (unsigned)flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;
    return shift > nw_page_shift ? 1u << (shift - nw_page_shift) : HUGE_PAGES;
}

static int of_anonymous(named *of, size_t bytes, int flags) {
    int huge = (flags & MAP_HUGETLB) != 0;
    of->whole.granule = huge ? huge_pages(flags) : 1;
    of->whole.pages = pages_of(bytes);
    strcpy(of->name, huge ? "hugetlb:" : "shared:");
    return huge || (flags & MAP_TYPE) != MAP_PRIVATE;
}

/* `fresh`: none of its pages is in this process's page tables yet, so that there is nothing to move. */
static int place(const named *of, void *memory, size_t bytes, int fresh) {
    uint32_t rule = nw_match_name(of->name);
    if (rule == nw_placement->rules.count || !nw_reporting() || !nw_placing())
        return 0;
    nw_object object = {
        .page = (uint64_t)(uintptr_t)memory >> nw_page_shift,
        .pages = pages_of(bytes),
        .rule = rule,
        .thread = nw_thread_ordinal(),
        .fresh = fresh,
        .whole = of->whole,
    };
    if (strcmp(of->name, "shared:") == 0)
        object.whole.phase = nw_mapped_inode(memory);
    uint64_t granule = object.whole.granule; /* a mapping of huge pages has whole ones */
    object.pages = (object.pages + granule - 1) / granule * granule;
    nw_place(&object);
    nw_objects_add(&object);
    nw_seen(&object);
    return 1;
}

int nw_named_mapping(void *memory, size_t bytes, int flags, int file, long offset) {
    named of = {.whole = {0}};
    if (!nw_report)
        return 0;
    int known = flags & MAP_ANONYMOUS ? of_anonymous(&of, bytes, flags)
                                      : of_file(&of, bytes, flags, file, (uint64_t)offset);
    return known && place(&of, memory, bytes, !(flags & MAP_LOCKED));
}

/* Whether a segment that was just attached lies in huge pages: only these refuse to drop the part of one. Nothing of it is
 * mapped yet, so nothing is dropped. */
static int in_huge_pages(char *memory, size_t bytes) {
    return bytes > nw_page_bytes && madvise(memory + nw_page_bytes, nw_page_bytes, MADV_DONTNEED) != 0 &&
           errno == EINVAL;
}

static int place_segment(int segment, void *memory, const struct shmid_ds *status) {
    named of = {.whole = {.granule = 1}};
    of.whole.pages = pages_of(status->shm_segsz);
    of.whole.phase = (uint64_t)segment; /* the kernel's inode of a segment is its identifier */
    if (in_huge_pages(memory, status->shm_segsz)) {
        of.whole.granule = HUGE_PAGES;
        of.whole.phase = 0;
    }
    snprintf(of.name, NAME, "sysv:0x%08x", (unsigned)status->shm_perm.__key);
    return place(&of, memory, status->shm_segsz, 1);
}

static void attached(int segment, void *memory) {
    struct shmid_ds status;
    int placing = nw_report && nw_placing() && nw_has_rules(NW_KIND_FILE);
    if ((!placing && !nw_seeing()) || shmctl(segment, IPC_STAT, &status) != 0 || status.shm_segsz < NW_LARGE)
        return;
    if (!(placing && place_segment(segment, memory, &status)) && nw_seeing())
        nw_seen_shared(memory, status.shm_segsz);
}

EXPORT void *shmat(int segment, const void *at, int flags) {
    void *memory = (void *)syscall(SYS_shmat, segment, at, flags);
    int before = errno;
    if (memory != (void *)-1)
        attached(segment, memory);
    errno = before;
    return memory;
}

EXPORT int shmdt(const void *at) {
    int before = errno;
    if (nw_placing())
        nw_objects_remove((void *)(uintptr_t)at);
    errno = before;
    return (int)syscall(SYS_shmdt, at);
}
