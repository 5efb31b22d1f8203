: fib ( n -- f ) dup 2 < if exit then dup 1- recurse swap 2 - recurse + ;
20 fib . cr
: sum ( n -- s ) 0 swap 0 ?do i + loop ;
100000 sum . cr
create buffer 200000 allot
buffer 200000 42 fill
buffer 199999 + c@ . cr
bye
