/* The parts of QEMU's plugin interface that we use, as its header is not packaged everywhere. One source serves
 * all versions; NW_QEMU_API is the version that the library announces: 1 is accepted by QEMU 4.2 to 8.2, 2 by
 * 9.0 and later. */
#ifndef NODEWISE_EMULATOR_QEMU_H
#define NODEWISE_EMULATOR_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef NW_QEMU_API
#define NW_QEMU_API 1
#endif

#define NW_PLUGIN __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;   /* a translation block */
struct qemu_plugin_insn; /* an instruction of one, valid while it is translated */
struct qemu_plugin_hwaddr;

/* The fields that every version has. */
typedef struct qemu_info_t {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
} qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
/* Always request RW and check each access: 7.2 confuses R and W. */
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*qemu_plugin_simple_cb_t)(qemu_plugin_id_t);
typedef void (*qemu_plugin_udata_cb_t)(qemu_plugin_id_t, void *);
typedef void (*qemu_plugin_vcpu_simple_cb_t)(qemu_plugin_id_t, unsigned vcpu);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned vcpu, void *);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t address, void *);
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t, struct qemu_plugin_tb *);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_vcpu_simple_cb_t);
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, qemu_plugin_vcpu_simple_cb_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_vcpu_tb_trans_cb_t);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, qemu_plugin_vcpu_udata_cb_t,
                                          enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, qemu_plugin_vcpu_udata_cb_t,
                                            enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, qemu_plugin_vcpu_mem_cb_t, enum qemu_plugin_cb_flags,
                                      enum qemu_plugin_mem_rw, void *);
typedef void (*qemu_plugin_vcpu_syscall_cb_t)(qemu_plugin_id_t, unsigned vcpu, int64_t number, uint64_t, uint64_t,
                                              uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
typedef void (*qemu_plugin_vcpu_syscall_ret_cb_t)(qemu_plugin_id_t, unsigned vcpu, int64_t number, int64_t result);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_plugin_vcpu_syscall_cb_t);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_plugin_vcpu_syscall_ret_cb_t);
void qemu_plugin_register_flush_cb(qemu_plugin_id_t, qemu_plugin_simple_cb_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb_t, void *);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);

/* Up to version 2 this takes the instruction alone and returns a pointer to its bytes; from 3 on it
 * copies. Use nw_insn_bytes. */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *to, size_t room);

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);

/* System emulation only. */
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

const char *qemu_plugin_path_to_binary(void); /* user mode: the program */
void qemu_plugin_outs(const char *);

/* Where qemu_plugin_meminfo_t holds size and direction of an access. That is determined once, so that the
 * functions qemu_plugin_mem_... need not be called at every access. Bit `direction` is set for a read, the one
 * above it for a write, both for an atomic read-modify-write. */
typedef struct nw_meminfo {
    unsigned size;
    unsigned direction;
} nw_meminfo;

/* False if this QEMU encodes them in a way that is not known here. */
static inline bool nw_meminfo_learn(nw_meminfo *found) {
    *found = (nw_meminfo){0};
    for (unsigned bit = 1; bit < 31; bit++) {
        if (qemu_plugin_mem_size_shift(1u << bit) == 1)
            found->size = bit;
        if (qemu_plugin_mem_is_store(1u << bit))
            found->direction = bit - 1;
    }
    return found->size > 0 && found->direction > found->size + 2 &&
           qemu_plugin_mem_size_shift(4u << found->size) == 4 && !qemu_plugin_mem_is_store(1u << found->direction);
}

static inline unsigned nw_mem_bytes(const nw_meminfo *at, qemu_plugin_meminfo_t info) {
    return 1u << (info >> at->size & 7);
}

#define NW_INSN_MOST 15 /* bytes of the longest x86 instruction */

/* Copies the instruction's bytes to `to` (NW_INSN_MOST of room) and returns how many they are. */
static inline size_t nw_insn_bytes(const struct qemu_plugin_insn *insn, uint8_t *to) {
    size_t size = qemu_plugin_insn_size(insn);
    if (size > NW_INSN_MOST)
        size = NW_INSN_MOST;
    size_t result = qemu_plugin_insn_data(insn, to, size);
    if (result > size) /* no count: the old version's pointer */
        __builtin_memcpy(to, (const void *)result, size);
    return size;
}

#endif
