-- Data and accounts of the lab. Run as root over the socket, before each variant; it begins anew each time.
-- The accounts' passwords are in lab.yaml too (`secrets`): they open a server on loopback that lives for a minute.

-- Installing leaves a nameless account that would shadow the others on this host.
DROP USER IF EXISTS ''@'localhost';

DROP DATABASE IF EXISTS jobs;
CREATE DATABASE jobs;
USE jobs;

CREATE TABLE vacancy (
    id INT UNSIGNED NOT NULL PRIMARY KEY,
    title VARCHAR(60) NOT NULL,
    city VARCHAR(40) NOT NULL,
    salary INT UNSIGNED NOT NULL,
    description VARCHAR(400) NOT NULL
) ENGINE = InnoDB;

-- 200,000 rows: a scan that looks into each title takes about 0.08 s of one core; short enough that no single statement
-- looks slow, long enough that sixteen of them one after the other are more than a second.
INSERT INTO vacancy
SELECT seq,
       ELT(1 + seq % 9, 'Driver', 'Nurse', 'Baker', 'Carpenter', 'Teacher', 'Welder', 'Cook', 'Analyst', 'Surveyor'),
       ELT(1 + seq % 10, 'Lisbon', 'Oslo', 'Turin', 'Graz', 'Gdansk', 'Porto', 'Ghent', 'Split', 'Tartu', 'Malmo'),
       20000 + (seq * 7919) % 60000,
       CONCAT('Reference ', SHA2(seq, 256), '. Shifts are planned a month ahead; we train beginners; paid travel.')
FROM seq_1_to_200000;

-- One row a day counts the site's views: the decoy's hot row.
CREATE TABLE daily_views (
    day DATE NOT NULL PRIMARY KEY,
    views BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB;
INSERT INTO daily_views VALUES ('2024-01-15', 0);

CREATE OR REPLACE USER 'app'@'127.0.0.1' IDENTIFIED BY 'app-on-loopback';
GRANT SELECT, UPDATE ON jobs.* TO 'app'@'127.0.0.1';

CREATE OR REPLACE USER 'batch'@'127.0.0.1' IDENTIFIED BY 'batch-on-loopback';
GRANT SELECT, UPDATE ON jobs.* TO 'batch'@'127.0.0.1';

-- All that holdup needs, and nothing it could change or read of the site's data:
-- PROCESS shows others' sessions, the thread pool's queues and InnoDB's transactions and lock waits.
CREATE OR REPLACE USER 'holdup'@'127.0.0.1' IDENTIFIED BY 'holdup-on-loopback';
GRANT PROCESS ON *.* TO 'holdup'@'127.0.0.1';
GRANT SELECT ON performance_schema.* TO 'holdup'@'127.0.0.1';
