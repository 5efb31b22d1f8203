local count = {}
for line in io.lines("in/text") do for word in line:gmatch("%a+") do count[word] = (count[word] or 0) + 1 end end
local words = {}
for word in pairs(count) do words[#words + 1] = word end
table.sort(words, function(a, b) return count[a] > count[b] or count[a] == count[b] and a < b end)
for i = 1, 5 do print(words[i], count[words[i]]) end
local many = {}
for i = 1, 200000 do many[i] = i * 3 % 1009 end
table.sort(many)
print(#many, many[1], many[100000])
print(io.popen("echo from a pipe"):read("a"))
os.exit(8)
