set sum 0
for i in (seq 200)
    set sum (math $sum + $i)
end
echo sum $sum
function twice; echo $argv$argv; end
echo (twice (twice a)) | string upper
head -n 3 in/numbers | while read -l line; echo "<$line>"; end
grep -c the in/text > found.txt
cat found.txt
exit 6
