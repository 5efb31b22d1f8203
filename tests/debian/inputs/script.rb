require 'digest'
text = File.read('in/text')
count = Hash.new(0)
text.scan(/\w+/) { |w| count[w] += 1 }
count.sort_by { |w, n| [-n, w] }.first(5).each { |w, n| puts "#{w} #{n}" }
sums = (0...4).map { |t| Thread.new { (0...20_000).sum { |i| i * (t + 1) } } }.map(&:value)
p sums
reader, writer = IO.pipe
child = fork { reader.close; writer.puts Digest::SHA256.hexdigest(text); exit! 9 }
writer.close
puts reader.read
Process.wait child
p $?.exitstatus
GC.start
exit 3
