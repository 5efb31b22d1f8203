define(`repeat', `ifelse($1, 0, , `$2`'repeat(decr($1), `$2')')')dnl
repeat(400, `ab')
define(`fib', `ifelse(eval($1 < 2), 1, $1, `eval(fib(decr($1)) + fib(eval($1 - 2)))')')dnl
fib(12)
syscmd(`echo child')
sysval
