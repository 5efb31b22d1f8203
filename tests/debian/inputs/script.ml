let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2);;
Printf.printf "%d\n" (fib 22);;
let table = Hashtbl.create 16;;
for i = 0 to 50000 do Hashtbl.replace table (i mod 977) i done;;
Printf.printf "%d\n" (Hashtbl.length table);;
Gc.full_major ();;
exit 5;;
