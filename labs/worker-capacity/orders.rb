# The order service, as a Rack application: what it does is the same under every server. It deliberately has no server of its own
# and no threads: `config.ru` runs it on Puma, `fibres.rb` on Async::HTTP::Server.
#
#   POST /auth          a token
#   GET /orders/ID      with the token as a bearer: asks the auth service whether it is good, then the database
#   GET /health         for the liveness probe, on the same port and through the same queue
#
# In the environment: AUTH_PORT, DATABASE_PORT; POOL, `threads` or `fibres`; EMPTY_MS, so that the handler of orders asks nobody and
# does nothing but sleep for so long; CPU_MS, milliseconds of CPU that an order costs beyond that.
require "json"
require "net/http"
require "pg"
require "securerandom"

# Connections to the database, as a pool for threads gives them: each thread has its own for good. Puma's five threads have five.
# Fibres of one process are all on one thread, so they have one between them, and take turns.
class PoolOfThreads
  def initialize(&connect)
    @connect = connect
    @turn = {}
  end

  def with
    thread = Thread.current
    turn = @turn[thread] ||= Mutex.new
    turn.synchronize do
      connection = thread.thread_variable_get(:database)
      thread.thread_variable_set(:database, connection = @connect.call) unless connection
      yield connection
    end
  end
end

# The same number of connections for a process of fibres: who finds none free gives way to the others until one is.
class PoolOfFibres
  def initialize(size, &connect)
    @connect = connect
    @free = Async::Semaphore.new(size)
    @idle = []
  end

  def with
    @free.acquire do
      connection = @idle.pop || @connect.call
      answer = yield connection
      @idle.push(connection)
      answer
    end
  end
end

class Orders
  # By policy an instance has ten connections to the database: it has two processes.
  CONNECTIONS = 5
  # The order itself is found in no time; what else the statement does takes 8 ms by the clock, on any machine.
  QUERY = "SELECT id, total FROM orders, pg_sleep(0.008) WHERE id = $1".freeze
  ORDER = %r{\A/orders/(\d{1,9})\z}

  def initialize(environment = ENV)
    @auth_port = Integer(environment.fetch("AUTH_PORT"))
    @empty = environment.key?("EMPTY_MS")
    @empty_seconds = environment.fetch("EMPTY_MS", "0").to_f / 1000
    @cpu_seconds = environment.fetch("CPU_MS", "0").to_f / 1000
    port = Integer(environment.fetch("DATABASE_PORT"))
    connect = -> { PG.connect(host: "127.0.0.1", port: port, user: "app", dbname: "postgres") }
    @pool = environment["POOL"] == "fibres" ? PoolOfFibres.new(CONNECTIONS, &connect) : PoolOfThreads.new(&connect)
    # Open connections to the auth service that nobody uses just now.
    @neighbours = []
  end

  def call(env)
    path = env["PATH_INFO"]
    case env["REQUEST_METHOD"]
    when "GET"
      return answer(200, status: "ok") if path == "/health"

      found = ORDER.match(path)
      return order(Integer(found[1]), env["HTTP_AUTHORIZATION"].to_s) if found
    when "POST"
      return answer(200, access_token: SecureRandom.hex(16)) if path == "/auth"
    end
    answer(404, error: "there is no #{path}")
  end

  private

  def order(id, bearer)
    if @empty
      sleep(@empty_seconds)
      return answer(200, id: id)
    end
    return answer(401, error: "this token is not good") unless good?(bearer)

    row = @pool.with { |database| database.exec_params(QUERY, [id]).first }
    use_cpu
    row ? answer(200, id: Integer(row["id"]), total: Integer(row["total"])) : answer(404, error: "there is no order #{id}")
  end

  # The neighbour is asked each time: a token may have been taken back.
  def good?(bearer)
    connection = @neighbours.pop || Net::HTTP.start("127.0.0.1", @auth_port, open_timeout: 5, read_timeout: 10)
    status = connection.get("/check", "Authorization" => bearer).code
    @neighbours.push(connection)
    status == "200"
  end

  # By the CPU's clock, so that a busy machine makes it no more.
  def use_cpu
    return if @cpu_seconds.zero?

    clock = Process::CLOCK_THREAD_CPUTIME_ID
    until_then = Process.clock_gettime(clock) + @cpu_seconds
    JSON.parse('{"lines": [1, 2, 3]}') while Process.clock_gettime(clock) < until_then
  end

  def answer(status, body)
    text = "#{JSON.generate(body)}\n"
    [status, { "Content-Type" => "application/json", "Content-Length" => text.bytesize.to_s }, [text]]
  end
end
