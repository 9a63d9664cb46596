package shop;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.scheduling.annotation.EnableScheduling;

/**
 * An ordinary shop: Spring Boot and Hikari on PostgreSQL, without metrics and traces. It answers what the bench's other
 * apps answer. Knobs make it slow in one way or another. It knows nothing of holdup.
 */
@SpringBootApplication
@EnableScheduling
public class Shop {
    public static void main(String[] arguments) {
        String listen = System.getenv("SHOP_LISTEN");
        int colon = listen.lastIndexOf(':');
        String[] database = System.getenv("SHOP_DATABASE").split("@", 2);
        SpringApplication application = new SpringApplication(Shop.class);
        application.setDefaultProperties(Map.of(
                "server.address", listen.substring(0, colon),
                "server.port", listen.substring(colon + 1),
                "server.tomcat.threads.min-spare", "4",
                "spring.main.banner-mode", "off",
                "spring.datasource.url", "jdbc:postgresql://" + database[1],
                "spring.datasource.username", database[0],
                "spring.datasource.hikari.auto-commit", "false",
                "spring.datasource.hikari.connection-timeout", "10000"));
        application.run(arguments);
    }

    @EventListener(ApplicationReadyEvent.class)
    public void ready() {
        System.out.println("ready " + System.getenv("SHOP_LISTEN"));
    }
}
