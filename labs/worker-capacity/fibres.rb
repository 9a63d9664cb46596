# The order service on Async::HTTP::Server, which Falcon wraps: two processes of one thread each, a fibre for every connection. They
# accept from one socket. In the environment: PORT, and the order service's own.
require "async"
require "async/http/endpoint"
require "async/http/server"
require "async/io/shared_endpoint"
require "async/semaphore"
require "protocol/http/response"
require_relative "orders"

# From the server's requests to Rack's and back: as much as the order service looks at.
class ToRack
  def initialize(app)
    @app = app
  end

  def call(request)
    authorization = request.headers["authorization"]
    status, headers, body = @app.call(
      "REQUEST_METHOD" => request.method,
      "PATH_INFO" => request.path.split("?", 2).first,
      "HTTP_AUTHORIZATION" => authorization.is_a?(Array) ? authorization.first : authorization
    )
    # How long it is says the server itself.
    Protocol::HTTP::Response[status, { "content-type" => headers.fetch("Content-Type") }, body]
  end

  def close; end
end

endpoint = Async::HTTP::Endpoint.parse("http://127.0.0.1:#{Integer(ENV.fetch("PORT"))}")
socket = Async { Async::IO::SharedEndpoint.bound(endpoint) }.wait
workers = Array.new(2) do
  fork do
    server = Async::HTTP::Server.new(ToRack.new(Orders.new), socket, protocol: endpoint.protocol, scheme: endpoint.scheme)
    trap("TERM") { exit!(0) }
    Async { server.run }
  end
end
%w[TERM INT].each do |signal|
  trap(signal) { workers.each { |worker| Process.kill("TERM", worker) rescue nil } }
end
puts "ready"
$stdout.flush
# One that ends takes the other with it, and then whoever watches this starts both again.
Process.wait
workers.each { |worker| Process.kill("TERM", worker) rescue nil }
