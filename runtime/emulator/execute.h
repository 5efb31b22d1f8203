/* What an emulated program executes is emulated too. */
#ifndef NODEWISE_EMULATOR_EXECUTE_H
#define NODEWISE_EMULATOR_EXECUTE_H

/* How this emulator was started: kept for its successors. */
void nw_execute_prepare(const char *preload, const char *arguments);

/* In place of execveat (execve: AT_FDCWD), with the program's own arguments. Returns if the file cannot be
 * emulated (then the kernel may know what to do with it) or not be executed at all (then it says why). */
void nw_execute(int folder, const char *path, char *const *arguments, char *const *environment);

#endif
