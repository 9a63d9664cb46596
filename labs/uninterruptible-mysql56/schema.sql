-- Data and accounts of the lab. Run as root over the socket, before each variant; it begins anew each time.
-- The accounts' passwords are in lab.yaml too (`secrets`): they open a server on loopback that lives for a minute.
DROP DATABASE IF EXISTS forum;
CREATE DATABASE forum;
-- Makes the account as well. The nameless one that a new server has would shadow it.
GRANT SELECT ON forum.* TO 'app'@'127.0.0.1' IDENTIFIED BY 'app-on-loopback';
GRANT PROCESS ON *.* TO 'holdup'@'127.0.0.1' IDENTIFIED BY 'holdup-on-loopback';
GRANT SELECT ON performance_schema.* TO 'holdup'@'127.0.0.1';
DELETE FROM mysql.user WHERE user = '';
FLUSH PRIVILEGES;
