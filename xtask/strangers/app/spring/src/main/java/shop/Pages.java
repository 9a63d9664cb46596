package shop;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.zaxxer.hikari.HikariDataSource;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.ReentrantLock;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** The pages of the shop. */
@RestController
public class Pages {
    private record Step(String sql, int number) {}

    private final Knobs knobs;
    private final HikariDataSource pool;
    private final Map<String, List<String>> routes;
    private final HttpClient thirdParty = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final ReentrantLock lock = new ReentrantLock();
    private final List<Connection> leaked = new ArrayList<>();
    private long taken;

    Pages(Knobs knobs, HikariDataSource pool) throws Exception {
        this.knobs = knobs;
        this.pool = pool;
        ObjectMapper json = new ObjectMapper();
        routes = json.readValue(System.getenv("SHOP_ROUTES"), json.getTypeFactory().constructMapType(
                Map.class, json.constructType(String.class),
                json.getTypeFactory().constructCollectionType(List.class, String.class)));
    }

    @GetMapping("/{name}")
    Map<String, Object> answer(@PathVariable("name") String name, @RequestParam(name = "id", defaultValue = "1") int id)
            throws Exception {
        if (!routes.containsKey(name)) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND);
        }
        work();
        if ((name.equals("order") || name.equals("history"))) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("SHOP_DOWNSTREAM"))).build();
            thirdParty.send(request, HttpResponse.BodyHandlers.discarding());
        }
        int rows = query(name, id);
        return Map.of("id", id, "rows", rows, "filler", " ".repeat((int) knobs.get("answer_bytes")));
    }

    /** What a release may have added to every request. */
    private void work() throws InterruptedException {
        if (knobs.get("cpu_ms") > 0) {
            long until = System.nanoTime() + (long) (knobs.get("cpu_ms") * 1e6);
            while (System.nanoTime() < until) {
                Thread.onSpinWait();
            }
        }
        pause(knobs.get("sleep_ms"));
        if (knobs.get("lock_ms") > 0) {
            lock.lock();
            try {
                pause(knobs.get("lock_ms"));
            } finally {
                lock.unlock();
            }
        }
    }

    private static void pause(double milliseconds) throws InterruptedException {
        if (milliseconds > 0) {
            Thread.sleep((long) milliseconds);
        }
    }

    /** The statements of one request, each with its number. */
    private List<Step> steps(String name, int number) {
        List<Step> steps = new ArrayList<>();
        if (name.equals("category") && knobs.get("n_plus_one") > 0) {
            for (int row = 0; row < knobs.get("n_plus_one"); row++) {
                steps.add(new Step(routes.get("item").get(0), number - 1 + 600 * row));
            }
            return steps;
        }
        String route = name.equals("history") && knobs.get("released") > 0 ? "released" : name;
        routes.get(route).forEach(sql -> steps.add(new Step(sql, number)));
        return steps;
    }

    private int query(String name, int number) throws Exception {
        if (name.equals("item") && ThreadLocalRandom.current().nextDouble() < knobs.get("cached_ratio")) {
            return 1;
        }
        int rows = 0;
        Connection connection = connect();
        try {
            for (Step step : steps(name, number)) {
                rows += execute(connection, step);
            }
            pause(knobs.get("transaction_ms"));
            connection.commit();
            pause(knobs.get("hold_ms"));
            return rows;
        } finally {
            giveBack(connection);
        }
    }

    private static int execute(Connection connection, Step step) throws SQLException {
        String sql = step.sql();
        int parameters = (sql.length() - sql.replace("{id}", "").length()) / 4;
        try (PreparedStatement statement = connection.prepareStatement(sql.replace("{id}", "?"))) {
            for (int place = 1; place <= parameters; place++) {
                statement.setInt(place, step.number());
            }
            int rows = 0;
            if (!statement.execute()) {
                return statement.getUpdateCount();
            }
            try (ResultSet result = statement.getResultSet()) {
                while (result.next()) {
                    rows++;
                }
            }
            return rows;
        }
    }

    private Connection connect() throws SQLException {
        if (knobs.get("reconnect") == 0) {
            return pool.getConnection();
        }
        Connection connection = DriverManager.getConnection(pool.getJdbcUrl(), pool.getUsername(), "");
        connection.setAutoCommit(false);
        return connection;
    }

    /** Back to the pool. Now and then one stays out, if the knob says so. */
    private void giveBack(Connection connection) throws SQLException {
        List<Connection> found = new ArrayList<>();
        int every = (int) knobs.get("leak_every");
        synchronized (leaked) {
            taken++;
            if (every > 0 && taken % every == 0) {
                leaked.add(connection);
                return;
            }
            found.add(connection);
            if (every == 0) {
                found.addAll(leaked);
                leaked.clear();
            }
        }
        for (Connection one : found) {
            one.close();
        }
    }
}
