/* Programs that an emulated program executes are emulated too. */
#ifndef NODEWISE_EMULATOR_EXECUTE_H
#define NODEWISE_EMULATOR_EXECUTE_H

/* Stores how this emulator was started, so that further ones can be started in the same way. */
void nw_execute_prepare(const char *preload, const char *arguments);

/* Executes a file under the emulator, in place of execveat (for execve, `folder` is AT_FDCWD). Returns if the file
 * cannot be emulated. The program's own system call then follows: the kernel executes the file, or returns the
 * error. */
void nw_execute(int folder, const char *path, char *const *arguments, char *const *environment);

#endif
