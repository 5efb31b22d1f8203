section .data
%assign i 0
%rep 2000
    dq i * i
%assign i i + 1
%endrep
section .text
global main
main: xor eax, eax
    ret
