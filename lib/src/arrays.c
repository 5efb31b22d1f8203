/* Arrays, and the registry that finds them by their data and by their table of rows. */
#include "copies.h"
#include "kernel.h"
#include "library.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct key {
    const void *pointer;
    nw_array *array;
} key;

/* An array in the registry, with both of its keys. */
typedef struct member {
    nw_array array; /* first */
    key data, table;
} member;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *registry;
static uint64_t serials;

/* A forked child must not inherit a lock that is held by a thread which does not exist in the child. */
static void before_fork(void) { pthread_rwlock_wrlock(&lock); }
static void after_fork(void) { pthread_rwlock_unlock(&lock); }
/* In the child. Threads that waited for the lock do not exist there, and unlocking it would pass it to one of them. */
static void renewed(void) { lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER; }
/* Registered early, as in threads.c. Handlers before a fork run in reverse order of registration, so that MAI's lock is
 * taken before these, as everywhere else. */
__attribute__((constructor(101))) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, renewed); }

static int by_pointer(const void *a, const void *b) {
    const key *x = a, *y = b;
    return (x->pointer > y->pointer) - (x->pointer < y->pointer);
}

static nw_array *found(const void *pointer) {
    key wanted = {pointer, NULL};
    void *node = tfind(&wanted, &registry, by_pointer);
    return node ? (*(key **)node)->array : NULL;
}

nw_array *nw_array_of(const void *pointer) {
    pthread_rwlock_rdlock(&lock);
    nw_array *array = pointer ? found(pointer) : NULL;
    pthread_rwlock_unlock(&lock);
    if (!array)
        nw_fail(NW_NO_ARRAY, "%p is no array: not from nw_alloc or nw_adopt, or freed already", (void *)pointer);
    return array;
}

static void unregister(member *of) {
    tdelete(&of->data, &registry, by_pointer);
    if (of->table.pointer)
        tdelete(&of->table, &registry, by_pointer);
}

static void discard(nw_array *array) {
    nw_copies_free(array->copies);
    if (array->mapped)
        munmap(nw_array_base(array, nw_machine_now()->page), array->mapped);
    nw_file_close(array->file);
    free(array->table);
    free(array);
}

/* Adds a key that points to new memory. If another array has the same key, its memory does not exist any more. */
static int register_key(key *name) {
    nw_array *stale = found(name->pointer);
    if (stale && stale != name->array) {
        stale->mapped = 0;
        unregister((member *)stale);
        nw_place_forgotten(stale);
        discard(stale);
    }
    return tsearch(name, &registry, by_pointer) != NULL;
}

/* Fills items and pages; 0 if sizes overflow or are zero, with the message set. */
static int measured(nw_shape *shape, size_t item, int dimensions, const size_t *extents) {
    size_t bytes, page = nw_machine_now()->page;
    if (dimensions < 1 || dimensions > NW_DIMENSIONS || !extents)
        return nw_fail(0, "an array has 1 to %d dimensions, not %d", NW_DIMENSIONS, dimensions);
    *shape = (nw_shape){item, dimensions, {1, 1, 1, 1}, 1, 0};
    for (int d = 0; d < dimensions; d++) {
        if (extents[d] == 0)
            return nw_fail(0, "extent %d of the array is zero", d);
        shape->extents[d] = extents[d];
        if (__builtin_mul_overflow(shape->items, extents[d], &shape->items))
            return nw_fail(0, "the array has more items than memory has addresses");
    }
    if (item == 0)
        return nw_fail(0, "items of zero bytes");
    if (__builtin_mul_overflow(shape->items, item, &bytes) || bytes > PTRDIFF_MAX - 2 * page)
        return nw_fail(0, "%zu items of %zu bytes are more than memory has addresses", shape->items, item);
    return 1;
}

static int same_shape(const nw_shape *a, const nw_shape *b) {
    return a->item == b->item && a->dimensions == b->dimensions &&
           memcmp(a->extents, b->extents, sizeof a->extents) == 0;
}

/* NW_OK for memory that is not an array yet, or was adopted with the same shape and file. In the latter case it cannot
 * be known whether the memory was freed without nw_forget and allocated again; the earlier adoption then continues. */
static int adoptable(const nw_shape *shape, const void *memory, const nw_file *file) {
    const nw_array *known = found(memory);
    const size_t *n = known ? known->shape.extents : NULL;
    int same = known && nw_file_same(known->file, file);
    if (!known || (!known->mapped && known->data == memory && same && same_shape(&known->shape, shape)))
        return NW_OK;
    if (known->mapped || known->data != memory)
        return nw_fail(NW_INVALID, "%p is an array already", memory);
    if (!same)
        return nw_fail(NW_INVALID, "%p is adopted already, of another file or of none: nw_forget it first", memory);
    return nw_fail(NW_INVALID, "%p is adopted already as %zux%zux%zux%zu items of %zu bytes: nw_forget it first",
                   memory, n[0], n[1], n[2], n[3], known->shape.item);
}

/* Registers new memory, or adopted memory (`mapped` is 0), which may be registered already. The file, or null, is the
 * array's then, and otherwise closed. */
static int registered(const nw_shape *shape, char *data, size_t mapped, nw_file *file) {
    member *made = calloc(1, sizeof *made);
    if (!made) {
        nw_file_close(file);
        return nw_fail(NW_NO_MEMORY, "no memory to know an array by");
    }
    size_t page = nw_machine_now()->page, head = (uintptr_t)data % page;
    nw_array *array = &made->array;
    array->data = data;
    array->shape = *shape;
    array->mapped = mapped;
    array->file = file;
    array->shape.pages = (head + shape->items * shape->item + page - 1) / page;
    made->data = (key){data, array};
    pthread_rwlock_wrlock(&lock);
    array->serial = ++serials;
    int status = mapped ? NW_OK : adoptable(shape, data, file), again = !mapped && found(data);
    if (!again && !register_key(&made->data))
        status = nw_fail(NW_NO_MEMORY, "no memory to know an array by");
    pthread_rwlock_unlock(&lock);
    if (again || status != NW_OK) {
        nw_file_close(file);
        free(made);
    }
    return status;
}

int nw_register_file(char *data, size_t bytes, size_t mapped, nw_file *file) {
    nw_shape shape;
    if (measured(&shape, 1, 1, &bytes))
        return registered(&shape, data, mapped, file);
    nw_file_close(file);
    return NW_INVALID;
}

/* An address whose page, huge or not, the kernel's interleaving over a power of two of nodes puts on the first node.
 * It is only a hint: the address may be taken meanwhile, and placement does not depend on it. */
static void *good_address(size_t bytes) {
    const nw_machine *machine = nw_machine_now();
    size_t alignment = machine->page;
    if (machine->node_count < 2)
        return NULL;
    if (machine->huge && bytes >= machine->huge)
        alignment = machine->huge;
    for (int nodes = 1; nodes < machine->node_count; nodes *= 2)
        alignment *= 2;
    size_t room = bytes + alignment;
    void *free_room = (void *)syscall(SYS_mmap, NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                                      0ul);
    if (free_room == MAP_FAILED)
        return NULL;
    syscall(SYS_munmap, free_room, room);
    return (char *)free_room + (alignment - (uintptr_t)free_room % alignment) % alignment;
}

void *nw_map(size_t bytes) {
    int before = errno;
    void *data = mmap(good_address(bytes), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = before;
    return data == MAP_FAILED ? NULL : data;
}

void *nw_alloc(size_t item, int dimensions, const size_t *extents) {
    nw_shape shape;
    if (!measured(&shape, item, dimensions, extents))
        return NULL;
    size_t page = nw_machine_now()->page, bytes = (shape.items * item + page - 1) / page * page;
    char *data = nw_map(bytes);
    if (data && registered(&shape, data, bytes, NULL) == NW_OK)
        return data;
    if (data)
        munmap(data, bytes);
    nw_fail(NW_NO_MEMORY, "no memory for an array of %zu bytes", bytes);
    return NULL;
}

void *nw_alloc_1d(size_t nx, size_t item) { return nw_alloc(item, 1, &nx); }

void *nw_alloc_2d(size_t nx, size_t ny, size_t item) {
    size_t extents[] = {nx, ny};
    return nw_alloc(item, 2, extents);
}

void *nw_alloc_3d(size_t nx, size_t ny, size_t nz, size_t item) {
    size_t extents[] = {nx, ny, nz};
    return nw_alloc(item, 3, extents);
}

void *nw_alloc_4d(size_t nx, size_t ny, size_t nz, size_t nw, size_t item) {
    size_t extents[] = {nx, ny, nz, nw};
    return nw_alloc(item, 4, extents);
}

/* Takes an array out of the registry. */
static int taken(void *pointer, int adopted, nw_array **array) {
    int status = NW_OK;
    pthread_rwlock_wrlock(&lock);
    *array = pointer ? found(pointer) : NULL;
    if (!*array)
        status = NW_NO_ARRAY;
    else if (adopted != !(*array)->mapped)
        status = NW_INVALID;
    else
        unregister((member *)*array);
    pthread_rwlock_unlock(&lock);
    return status;
}

int nw_free(void *pointer) {
    nw_array *array;
    int status = taken(pointer, 0, &array);
    if (status == NW_NO_ARRAY)
        return nw_fail(status, "%p is no array: not from nw_alloc, or freed already", pointer);
    if (status == NW_INVALID)
        return nw_fail(status, "%p was adopted, not allocated: nw_forget it", pointer);
    nw_place_forgotten(array);
    discard(array);
    return NW_OK;
}

int nw_adopt(void *memory, size_t item, int dimensions, const size_t *extents) {
    nw_shape shape;
    if (!memory)
        return nw_fail(NW_INVALID, "a null pointer cannot be an array");
    if (!measured(&shape, item, dimensions, extents))
        return NW_INVALID;
    if ((uintptr_t)memory + shape.items * item < (uintptr_t)memory)
        return nw_fail(NW_INVALID, "an array at %p cannot have %zu bytes", memory, shape.items * item);
    return registered(&shape, memory, 0, NULL);
}

int nw_forget(void *pointer) {
    nw_array *array;
    int status = taken(pointer, 1, &array);
    if (status == NW_NO_ARRAY)
        return nw_fail(status, "%p is no array: not adopted, or forgotten already", pointer);
    if (status == NW_INVALID)
        return nw_fail(status, "%p was allocated, not adopted: nw_free it", pointer);
    nw_place_undone(array);
    nw_place_forgotten(array);
    nw_copies_unguarded(array);
    discard(array);
    return NW_OK;
}

/* Each level of the table has pointers into the next level, the last one to rows. */
static void fill_table(void **table, const nw_array *array) {
    const nw_shape *shape = &array->shape;
    size_t entries = 1;
    for (int d = 0; d < shape->dimensions - 1; d++) {
        entries *= shape->extents[d];
        void **next = table + entries;
        int last = d == shape->dimensions - 2;
        size_t step = shape->extents[d + 1] * (last ? shape->item : 1);
        for (size_t i = 0; i < entries; i++)
            table[i] = last ? (void *)(array->data + i * step) : (void *)(next + i * step);
        table = next;
    }
}

static void **new_table(const nw_array *array) {
    size_t entries = 1, all = 0, bytes;
    for (int d = 0; d < array->shape.dimensions - 1; d++) {
        entries *= array->shape.extents[d]; /* fewer than items */
        if (__builtin_add_overflow(all, entries, &all))
            return NULL;
    }
    void **table = __builtin_mul_overflow(all, sizeof *table, &bytes) ? NULL : malloc(bytes);
    if (table)
        fill_table(table, array);
    return table;
}

void *nw_index(void *pointer) {
    nw_array *array = nw_array_of(pointer);
    if (!array)
        return NULL;
    if (array->shape.dimensions == 1)
        return array->data;
    pthread_rwlock_wrlock(&lock);
    if (!array->table && (array->table = new_table(array)) != NULL) {
        member *of = (member *)array;
        of->table = (key){array->table, array};
        if (!register_key(&of->table)) {
            free(array->table);
            array->table = NULL;
            of->table.pointer = NULL;
        }
    }
    void *table = array->table;
    pthread_rwlock_unlock(&lock);
    if (!table)
        nw_fail(NW_NO_MEMORY, "no memory for a table of rows");
    return table;
}

int nw_shape_of(const void *pointer, nw_shape *shape) {
    nw_array *array = nw_array_of(pointer);
    if (!array)
        return NW_NO_ARRAY;
    if (!shape)
        return nw_fail(NW_INVALID, "no room for a shape");
    *shape = array->shape;
    return NW_OK;
}
