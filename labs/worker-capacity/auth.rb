# The neighbour: says of every token that it is good, after DELAY_MS milliseconds. With SLOW_MS it takes that long from SLOW_AFTER_SECONDS
# on, counted from the first question. It is never busy: fibres sleep. In the environment also PORT.
require "async"
require "async/http/endpoint"
require "async/http/server"
require "protocol/http/response"

delay = Float(ENV.fetch("DELAY_MS")) / 1000
slow = Float(ENV.fetch("SLOW_MS", ENV.fetch("DELAY_MS"))) / 1000
after = Float(ENV.fetch("SLOW_AFTER_SECONDS", "0"))
first = nil

Async do
  endpoint = Async::HTTP::Endpoint.parse("http://127.0.0.1:#{Integer(ENV.fetch("PORT"))}")
  server = Async::HTTP::Server.for(endpoint) do |_request|
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    first ||= now
    sleep(now - first >= after ? slow : delay)
    Protocol::HTTP::Response[200, {}, ["good\n"]]
  end
  server.run
end
