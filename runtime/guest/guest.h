/* PID 1 of the laboratory's guest: prepares the machine, tells the emulator which frames belong to which node,
 * runs the commands of the plan, sends back the results, and powers off.
 *
 * While a command runs, init touches no memory in user mode, so that the emulator counts the command's accesses
 * only; at the end of a slice, a few of init's own pages are counted too. Init never hangs: it reports a failure
 * on the control channel and powers off.
 */
#ifndef NODEWISE_GUEST_H
#define NODEWISE_GUEST_H

#include <stdint.h>

/* ports.c: three channels to the host, 8-bit clean. */
extern int nw_control, nw_output, nw_errors;
void nw_ports_open(void);
/* One line on the control channel. */
void nw_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `failed TEXT`, and power off. */
void nw_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void nw_power_off(void) __attribute__((noreturn));
/* `KIND NAME BYTES` and the bytes. */
void nw_send(const char *kind, const char *name, const void *bytes, uint64_t count);
void nw_send_file(const char *kind, const char *name, const char *path);
/* Waits until the host has received all that was written. */
void nw_ports_drain(void);

/* files.c */
int nw_write_text(const char *path, const char *text);
/* A small file's text, null-terminated, in a buffer that the next call reuses; null if unreadable. */
char *nw_read_text(const char *path, uint64_t *bytes);
uint64_t nw_clock(int clock);

/* plan.c: /lab/plan. Plans beyond these limits are refused before the guest is booted: crates/lab/src/plan.rs. */
enum { NW_ARGUMENTS = 4096, NW_RUNS = 1024, NW_BROUGHT = 64 };
typedef struct nw_run {
    int balancing;
    char **arguments; /* ends with null */
} nw_run;
typedef struct nw_plan {
    char **environment; /* ends with null */
    const char *folder, *input;
    int slice_ms; /* 0: a run is not cut into slices */
    int capture;
    int brought;
    const char *bring[NW_BROUGHT];
    int runs;
    nw_run run[NW_RUNS];
} nw_plan;
nw_plan *nw_plan_read(void);

/* calibration.c */
void nw_calibrate(void);
/* Tells the emulator that what it counts next belongs to this run. */
void nw_mark_run(int number);
/* Tells the emulator that this slice of the run ends here. */
void nw_mark_slice(int number);

/* command.c */
void nw_command_run(const nw_plan *plan, int number);

/* capture.c: sysfs of nodes and CPUs. */
void nw_capture(void);

/* bring.c: sends a file or a folder that a command left, if it exists. */
void nw_bring(const char *path);

#endif
