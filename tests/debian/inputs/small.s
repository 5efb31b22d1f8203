    .data
    .rept 20000
    .quad 0x123456789
    .endr
    .text
    .globl main
main:
    .rept 5000
    addq $1, %rax
    .endr
    ret
