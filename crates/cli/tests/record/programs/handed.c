/* What another program starts. */
static _Alignas(4096) volatile long handed[1024];

int main(void) {
    for (int i = 0; i < 1024; i++)
        handed[i] = i;
    return 3;
}
