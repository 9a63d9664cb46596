// A service on the JVM with its collector's metrics as Prometheus' client for Java names them.
// /pause?seconds=N: for N seconds a thread asks for full collections of many live objects. How long they stop the
// others is counted by a thread that sleeps a millisecond at a time, and wakes up late.
import com.sun.net.httpserver.HttpServer;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

public class Service {
    static class Node {
        Node next;
    }

    static volatile double stoppedSeconds;
    static Node live;

    static void watch() throws InterruptedException {
        while (true) {
            long begun = System.nanoTime();
            Thread.sleep(1);
            double late = (System.nanoTime() - begun) / 1e9 - 0.001;
            // Less is the scheduler of the host.
            if (late > 0.02) {
                stoppedSeconds += late;
            }
        }
    }

    static void press(double seconds) {
        for (int i = 0; i < 3_000_000; i++) {
            Node node = new Node();
            node.next = live;
            live = node;
        }
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < end) {
            System.gc();
            try {
                Thread.sleep(50);
            } catch (InterruptedException e) {
                return;
            }
        }
        live = null;
    }

    static String metrics() {
        StringBuilder text = new StringBuilder();
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            String labels = "{gc=\"" + bean.getName() + "\"} ";
            text.append("jvm_gc_collection_seconds_sum" + labels + bean.getCollectionTime() / 1e3 + "\n");
            text.append("jvm_gc_collection_seconds_count" + labels + bean.getCollectionCount() + "\n");
        }
        return text.append("own_stopped_seconds_total " + stoppedSeconds + "\n").toString();
    }

    static void daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) throws Exception {
        daemon(() -> {
            try {
                watch();
            } catch (InterruptedException e) {
                System.exit(1);
            }
        });
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 128);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            String query = exchange.getRequestURI().getQuery();
            if (path.equals("/pause")) {
                double seconds = Double.parseDouble(query.substring(query.indexOf('=') + 1));
                daemon(() -> press(seconds));
            }
            byte[] body = (path.equals("/metrics") ? metrics() : "done\n").getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
