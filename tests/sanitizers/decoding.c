/* The decoder of instructions reads nothing behind the bytes it is given: each case ends where its memory ends. */
#include "emulator/instruction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
    long cases = count > 1 ? atol(arguments[1]) : 1000, operands = 0, wide = 0;
    unsigned long long state = 88172645463325252ull;
    for (long i = 0; i < cases; i++) {
        size_t size = (state >> 33) % 16;
        unsigned char *bytes = malloc(size ? size : 1);
        for (size_t j = 0; j < size; j++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            static const unsigned char often[] = {0xf3, 0xf2, 0x66, 0x0f, 0xc4, 0xc5,
                                                  0x48, 0x38, 0x3a, 0x84, 0x24, 0x28};
            bytes[j] = state >> 62 ? often[(state >> 32) % sizeof often] : (unsigned char)(state >> 40);
        }
        nw_instruction found = nw_decode(bytes, size);
        operands += found.operand, wide += found.width > 0;
        free(bytes);
    }
    printf("%ld operands, %ld wide\n%d passed, %d failed\n", operands, wide, operands > 0, operands == 0);
    return operands == 0;
}
