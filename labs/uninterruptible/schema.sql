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

-- What people say of an article, a few words each. That the column could hold 4 GB is enough: MariaDB and MySQL group by it
-- in a temporary table on disk, however little is in it and whatever tmp_table_size says.
CREATE TABLE reaction (
    id INT UNSIGNED NOT NULL PRIMARY KEY,
    article INT UNSIGNED NOT NULL,
    body LONGTEXT NOT NULL,
    KEY (article)
) ENGINE = InnoDB;
INSERT INTO reaction SELECT seq, 1 + seq % 50, ELT(1 + seq DIV 50 % 4, 'well said', 'thanks', 'no', 'source?') FROM seq_0_to_799;

-- Forty small tables about an article, each in eight parts as somebody once thought they would grow. To open such a
-- table is to open all its parts: nothing if it happens once, two thirds of the statement's time if it happens each time.
CREATE TABLE author (
    article INT UNSIGNED NOT NULL PRIMARY KEY,
    value VARCHAR(40) NOT NULL
) ENGINE = InnoDB PARTITION BY HASH (article) PARTITIONS 8;
INSERT INTO author SELECT seq, CONCAT('about ', seq) FROM seq_1_to_50;
CREATE TABLE section LIKE author;
INSERT INTO section SELECT * FROM author;
CREATE TABLE region LIKE author;
INSERT INTO region SELECT * FROM author;
CREATE TABLE language LIKE author;
INSERT INTO language SELECT * FROM author;
CREATE TABLE licence LIKE author;
INSERT INTO licence SELECT * FROM author;
CREATE TABLE editor LIKE author;
INSERT INTO editor SELECT * FROM author;
CREATE TABLE photographer LIKE author;
INSERT INTO photographer SELECT * FROM author;
CREATE TABLE translator LIKE author;
INSERT INTO translator SELECT * FROM author;
CREATE TABLE agency LIKE author;
INSERT INTO agency SELECT * FROM author;
CREATE TABLE sponsor LIKE author;
INSERT INTO sponsor SELECT * FROM author;
CREATE TABLE series LIKE author;
INSERT INTO series SELECT * FROM author;
CREATE TABLE issue LIKE author;
INSERT INTO issue SELECT * FROM author;
CREATE TABLE template LIKE author;
INSERT INTO template SELECT * FROM author;
CREATE TABLE paywall LIKE author;
INSERT INTO paywall SELECT * FROM author;
CREATE TABLE teaser LIKE author;
INSERT INTO teaser SELECT * FROM author;
CREATE TABLE podcast LIKE author;
INSERT INTO podcast SELECT * FROM author;
CREATE TABLE gallery LIKE author;
INSERT INTO gallery SELECT * FROM author;
CREATE TABLE poll LIKE author;
INSERT INTO poll SELECT * FROM author;
CREATE TABLE map LIKE author;
INSERT INTO map SELECT * FROM author;
CREATE TABLE event LIKE author;
INSERT INTO event SELECT * FROM author;
CREATE TABLE topic LIKE author;
INSERT INTO topic SELECT * FROM author;
CREATE TABLE tone LIKE author;
INSERT INTO tone SELECT * FROM author;
CREATE TABLE rating LIKE author;
INSERT INTO rating SELECT * FROM author;
CREATE TABLE edition LIKE author;
INSERT INTO edition SELECT * FROM author;
CREATE TABLE correction LIKE author;
INSERT INTO correction SELECT * FROM author;
CREATE TABLE source_list LIKE author;
INSERT INTO source_list SELECT * FROM author;
CREATE TABLE embargo LIKE author;
INSERT INTO embargo SELECT * FROM author;
CREATE TABLE print_page LIKE author;
INSERT INTO print_page SELECT * FROM author;
CREATE TABLE byline LIKE author;
INSERT INTO byline SELECT * FROM author;
CREATE TABLE headline LIKE author;
INSERT INTO headline SELECT * FROM author;
CREATE TABLE summary_text LIKE author;
INSERT INTO summary_text SELECT * FROM author;
CREATE TABLE thumbnail LIKE author;
INSERT INTO thumbnail SELECT * FROM author;
CREATE TABLE caption LIKE author;
INSERT INTO caption SELECT * FROM author;
CREATE TABLE credit LIKE author;
INSERT INTO credit SELECT * FROM author;
CREATE TABLE advert LIKE author;
INSERT INTO advert SELECT * FROM author;
CREATE TABLE newsletter LIKE author;
INSERT INTO newsletter SELECT * FROM author;
CREATE TABLE push_note LIKE author;
INSERT INTO push_note SELECT * FROM author;
CREATE TABLE share_count LIKE author;
INSERT INTO share_count SELECT * FROM author;
CREATE TABLE reading_time LIKE author;
INSERT INTO reading_time SELECT * FROM author;
CREATE TABLE archive_box LIKE author;
INSERT INTO archive_box SELECT * FROM author;

-- The decoy's: 100,000 articles of 700 bytes, some 90 MB, read one by one by people who follow old links.
CREATE TABLE article (
    id INT UNSIGNED NOT NULL PRIMARY KEY,
    views INT UNSIGNED NOT NULL,
    body VARCHAR(1000) NOT NULL
) ENGINE = InnoDB;
INSERT INTO article SELECT seq, 0, REPEAT(SHA2(seq, 256), 11) FROM seq_1_to_100000;
