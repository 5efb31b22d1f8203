@ sum = 0
foreach i (1 2 3 4 5 6 7 8 9)
    @ sum = $sum + $i * $i
end
echo sum $sum
set list = (`head -n 3 in/numbers`)
echo $#list $list
grep -c the in/text | cat
(echo in a subshell; false) > sub.txt
echo status $status
exit 4
