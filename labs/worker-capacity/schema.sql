-- A thousand orders, made anew for each variant.
DROP TABLE IF EXISTS orders;
DROP ROLE IF EXISTS app;
DROP ROLE IF EXISTS holdup;
CREATE TABLE orders (id int PRIMARY KEY, total int NOT NULL);
INSERT INTO orders SELECT n, 100 + n % 900 FROM generate_series(1, 1000) AS n;
CREATE EXTENSION IF NOT EXISTS pg_stat_statements;
CREATE ROLE app LOGIN;
GRANT SELECT ON orders TO app;
-- All that holdup needs: it can change nothing.
CREATE ROLE holdup LOGIN;
GRANT pg_monitor TO holdup;
