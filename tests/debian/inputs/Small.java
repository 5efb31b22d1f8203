import java.util.*;
import java.util.concurrent.*;

public class Small {
    public static void main(String[] arguments) throws Exception {
        String text = new String(java.nio.file.Files.readAllBytes(java.nio.file.Path.of("in/text")));
        Map<String, Integer> count = new TreeMap<>();
        for (String word : text.split("\\W+")) count.merge(word, 1, Integer::sum);
        System.out.println(count.size() + " " + count.entrySet().iterator().next());
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> sums = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            final long n = t;
            sums.add(pool.submit(() -> { long s = 0; for (int i = 0; i < 100000; i++) s += i * n % 7; return s; }));
        }
        for (Future<Long> sum : sums) System.out.println(sum.get());
        pool.shutdown();
        System.gc();
        System.exit(6);
    }
}
