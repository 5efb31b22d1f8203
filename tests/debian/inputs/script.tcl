set channel [open in/text]
set text [read $channel]
close $channel
foreach word [regexp -all -inline {[a-z]+} [string range $text 0 200000]] { incr count($word) }
foreach word [lrange [lsort [array names count]] 0 4] { puts "$word $count($word)" }
set sum 0
for {set i 0} {$i < 50000} {incr i} { incr sum [expr {$i * 7 % 13}] }
puts $sum
puts [exec head -n 2 in/numbers]
after 20 { set done 1 }
vwait done
exit 3
