import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.function.UnaryOperator;
import org.opensearch.OpenSearchSecurityException;
import org.opensearch.common.settings.Settings;
import org.opensearch.common.util.concurrent.ThreadContext;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.env.Environment;
import org.opensearch.plugins.ActionPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.rest.BytesRestResponse;
import org.opensearch.rest.RestHandler;
import org.opensearch.rest.RestRequest;
import org.opensearch.transport.Netty4Plugin;

/** A node with the settings that its arguments give, and with accounts. */
public class Node extends org.opensearch.node.Node {
    Node(Settings settings, Path config) {
        super(new Environment(settings, config), List.of(Netty4Plugin.class, Accounts.class), true);
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder()
            .put("discovery.type", "single-node")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("network.host", "127.0.0.1")
            .put("node.processors", 1);
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            if (pair.length == 2) settings.put(pair[0], pair[1]);
        }
        new Node(settings.build(), Path.of(settings.get("path.home"), "config")).start();
        if (List.of(arguments).contains("once")) System.exit(0);
        Thread.currentThread().join();
    }

    /** Answers as the security plugin does: 401 for a login that is wrong or missing, 403 for what the account may not do. */
    public static class Accounts extends Plugin implements ActionPlugin {
        private static final String PASSWORD = ":s3cr3t-canary";

        @Override
        public UnaryOperator<RestHandler> getRestHandlerWrapper(ThreadContext context) {
            return handler -> (request, channel, client) -> {
                String user = user(request.header("Authorization"));
                if (user == null) {
                    refuse(request, channel, "Unauthorized", RestStatus.UNAUTHORIZED);
                } else if (!may(user, request)) {
                    refuse(request, channel, "no permissions for " + request.path() + " and User [" + user + "]", RestStatus.FORBIDDEN);
                } else {
                    handler.handleRequest(request, channel, client);
                }
            };
        }

        private static String user(String header) {
            if (header == null || !header.startsWith("Basic ")) return null;
            String login = new String(Base64.getDecoder().decode(header.substring(6)), StandardCharsets.UTF_8);
            String user = login.split(":", 2)[0];
            return login.equals(user + PASSWORD) && List.of("admin", "holdup", "half").contains(user) ? user : null;
        }

        private static boolean may(String user, RestRequest request) {
            if (user.equals("admin")) return true;
            return request.method() == RestRequest.Method.GET && !(user.equals("half") && request.path().contains("/_settings"));
        }

        private static void refuse(RestRequest request, org.opensearch.rest.RestChannel channel, String why, RestStatus status)
            throws java.io.IOException {
            // Unread parameters would be an error of their own.
            request.params().keySet().forEach(request::param);
            channel.sendResponse(new BytesRestResponse(channel, status, new OpenSearchSecurityException(why, status)));
        }
    }
}
