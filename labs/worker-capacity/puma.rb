# Two workers of five threads each, as the incident had them. In the environment: PORT, CONTROL_PORT, CONTROL_TOKEN; CONTROL_FILE is told the port.
workers 2
threads 5, 5
environment "production"
# Small, so that it is full within a second: with the default of 1,024 that takes longer, and ends the same.
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}?backlog=64"
activate_control_app "tcp://127.0.0.1:#{ENV.fetch("CONTROL_PORT")}", auth_token: ENV.fetch("CONTROL_TOKEN")
# Nothing is asked for twice, and no worker is ended because another one has the CPU.
worker_timeout 120
File.write(ENV.fetch("CONTROL_FILE"), ENV.fetch("CONTROL_PORT"))
