# Puma runs the order service from here.
require_relative "orders"
run Orders.new
