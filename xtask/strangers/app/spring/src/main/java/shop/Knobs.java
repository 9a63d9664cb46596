package shop;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.zaxxer.hikari.HikariDataSource;
import java.io.File;
import java.io.IOException;
import java.util.Map;
import org.apache.coyote.AbstractProtocol;
import org.springframework.boot.web.embedded.tomcat.TomcatWebServer;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

/** A JSON file that is read ten times a second. Threads and connections follow it at once. */
@Component
public class Knobs {
    private final File file = new File(System.getenv("SHOP_KNOBS"));
    private final ObjectMapper json = new ObjectMapper();
    private final HikariDataSource pool;
    private final ServletWebServerApplicationContext context;
    private volatile Map<String, Double> values = Map.of();

    Knobs(HikariDataSource pool, ServletWebServerApplicationContext context) {
        this.pool = pool;
        this.context = context;
        read();
    }

    double get(String name) {
        return values.getOrDefault(name, 0.0);
    }

    @Scheduled(fixedDelay = 100)
    void follow() {
        read();
        int size = (int) values.getOrDefault("pool", 16.0).doubleValue();
        if (pool.getMaximumPoolSize() != size) {
            // Never more idle connections than there may be connections.
            pool.setMinimumIdle(Math.min(size, pool.getMinimumIdle()));
            pool.setMaximumPoolSize(size);
            pool.setMinimumIdle(size);
            pool.getHikariPoolMXBean().softEvictConnections();
        }
        if (context.getWebServer() instanceof TomcatWebServer server
                && server.getTomcat().getConnector().getProtocolHandler() instanceof AbstractProtocol<?> protocol) {
            int threads = (int) values.getOrDefault("workers", 24.0).doubleValue();
            if (protocol.getMaxThreads() != threads) {
                protocol.setMinSpareThreads(Math.min(4, threads));
                protocol.setMaxThreads(threads);
            }
        }
    }

    private void read() {
        try {
            values = json.readValue(file, json.getTypeFactory()
                    .constructMapType(Map.class, String.class, Double.class));
        } catch (IOException replaced) {
            // It is replaced at this moment: the next look finds it.
        }
    }
}
