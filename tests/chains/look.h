/* Compares the chain at this place with that of the C library's unwinder. */
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) void
    look(void);
