-- Data and accounts of the lab, fed to the server's bootstrap mode once, which takes one statement a line or several lines a
-- statement, and begins without the tables of accounts.
FLUSH PRIVILEGES;
-- The accounts' passwords are in lab.yaml too (`secrets`): they open a server on loopback that lives for a minute.
CREATE OR REPLACE USER 'app'@'127.0.0.1' IDENTIFIED BY 'app-on-loopback';
-- All that holdup needs, and nothing it could change or read of the site's data.
CREATE OR REPLACE USER 'holdup'@'127.0.0.1' IDENTIFIED BY 'holdup-on-loopback';
GRANT PROCESS ON *.* TO 'holdup'@'127.0.0.1';
GRANT SELECT ON performance_schema.* TO 'holdup'@'127.0.0.1';

CREATE DATABASE forum;
GRANT SELECT, UPDATE ON forum.* TO 'app'@'127.0.0.1';
USE forum;

-- The decoy's: 100,000 articles of 700 bytes, some 90 MB, read one by one by people who follow old links.
CREATE TABLE article (
    id INT UNSIGNED NOT NULL PRIMARY KEY,
    views INT UNSIGNED NOT NULL,
    body VARCHAR(1000) NOT NULL
) ENGINE = InnoDB;
INSERT INTO article SELECT seq, 0, REPEAT(SHA2(seq, 256), 11) FROM seq_1_to_100000;
