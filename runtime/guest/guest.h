/* PID 1 of the laboratory's guest: prepares the machine, tells the emulator which frame lies on which
 * node, runs what the plan says, sends back what came of it, powers off.
 *
 * While a command runs, nothing here touches memory in user mode, so that what the emulator counts is
 * the command's; at the end of a slice, a few pages of init's own are. Init never hangs: what goes wrong is said on the control channel, and that is the end.
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
/* Until the host has all that was written. */
void nw_ports_drain(void);

/* files.c */
int nw_write_text(const char *path, const char *text);
/* A small file's text, null-terminated, in a buffer that the next call reuses; null if unreadable. */
char *nw_read_text(const char *path, uint64_t *bytes);
uint64_t nw_clock(int clock);

/* plan.c: /lab/plan. What exceeds these is refused before a boot is spent: crates/lab/src/plan.rs. */
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
/* What the emulator counts next is this run's. */
void nw_mark_run(int number);
/* What the emulator has counted of the run since the last slice is this one. */
void nw_mark_slice(int number);

/* command.c */
void nw_command_run(const nw_plan *plan, int number);

/* capture.c: sysfs of nodes and CPUs. */
void nw_capture(void);

/* bring.c: what a command left, a file or a folder; nothing where it left nothing. */
void nw_bring(const char *path);

#endif
