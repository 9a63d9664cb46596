-- Data and accounts of the lab. Run as root over the socket, before each variant; it begins anew each time.
-- The accounts' passwords are in lab.yaml too (`secrets`): they open a server in a network namespace that lives for a minute.

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

-- 20,100 rows, about 430 bytes each as text: the service draws one of the first 20,000.
INSERT INTO vacancy
SELECT seq,
       ELT(1 + seq % 9, 'Driver', 'Nurse', 'Baker', 'Carpenter', 'Teacher', 'Welder', 'Cook', 'Analyst', 'Surveyor'),
       ELT(1 + seq % 10, 'Lisbon', 'Oslo', 'Turin', 'Graz', 'Gdansk', 'Porto', 'Ghent', 'Split', 'Tartu', 'Malmo'),
       20000 + (seq * 7919) % 60000,
       CONCAT(SHA2(seq, 512), SHA2(seq + 1, 512), SHA2(seq + 2, 512))
FROM seq_1_to_20100;

-- One row a day counts the site's views: the decoy's hot row.
CREATE TABLE daily_views (
    day DATE NOT NULL PRIMARY KEY,
    views BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB;
INSERT INTO daily_views VALUES ('2024-01-15', 0);

CREATE OR REPLACE USER 'app'@'10.%' IDENTIFIED BY 'app-on-loopback';
GRANT SELECT, UPDATE ON jobs.* TO 'app'@'10.%';

CREATE OR REPLACE USER 'batch'@'10.%' IDENTIFIED BY 'batch-on-loopback';
GRANT SELECT, UPDATE ON jobs.* TO 'batch'@'10.%';

-- All that holdup needs, and nothing it could change or read of the site's data:
-- PROCESS shows others' sessions, the thread pool's queues and InnoDB's transactions and lock waits.
CREATE OR REPLACE USER 'holdup'@'10.%' IDENTIFIED BY 'holdup-on-loopback';
GRANT PROCESS ON *.* TO 'holdup'@'10.%';
GRANT SELECT ON performance_schema.* TO 'holdup'@'10.%';
