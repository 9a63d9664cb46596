-- What the site `forum` has and asks of it, for MariaDB and for MySQL 5.6: a statement that makes a temporary table on disk and opens
-- forty tables. Fed to a server that has the database, once.
USE forum;

CREATE TABLE digit (n INT UNSIGNED NOT NULL PRIMARY KEY);
INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);

-- What people say of an article, a few words each. That the column could hold 4 GB is enough: MariaDB and MySQL group by it
-- in a temporary table on disk, however little is in it and whatever tmp_table_size says.
CREATE TABLE reaction (
    id INT UNSIGNED NOT NULL PRIMARY KEY,
    article INT UNSIGNED NOT NULL,
    body LONGTEXT NOT NULL,
    KEY (article)
) ENGINE = InnoDB;
INSERT INTO reaction
SELECT a.n * 100 + b.n * 10 + c.n, 1 + (b.n * 10 + c.n) % 50, ELT(1 + a.n % 4, 'well said', 'thanks', 'no', 'source?')
FROM digit a, digit b, digit c;

-- Forty small tables about an article, each in thirty-two parts as somebody once thought they would grow. To open such a
-- table is to open all its parts: nothing if it happens once, most of the statement's time if it happens each time.
CREATE TABLE author (
    article INT UNSIGNED NOT NULL PRIMARY KEY,
    value VARCHAR(40) NOT NULL
) ENGINE = InnoDB PARTITION BY HASH (article) PARTITIONS 32;
INSERT INTO author SELECT 1 + a.n * 10 + b.n, 'about' FROM digit a, digit b WHERE a.n < 5;
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

-- All about the articles, with what people say of each. By the index: of a table as small as this one a server may read
-- all as well, and takes now the one and now the other.
CREATE SQL SECURITY INVOKER VIEW page AS SELECT r.article, r.body FROM reaction r FORCE INDEX (article)
    JOIN author USING (article) JOIN section USING (article) JOIN region USING (article) JOIN language USING
    (article) JOIN licence USING (article) JOIN editor USING (article) JOIN photographer USING (article) JOIN
    translator USING (article) JOIN agency USING (article) JOIN sponsor USING (article) JOIN series USING (article)
    JOIN issue USING (article) JOIN template USING (article) JOIN paywall USING (article) JOIN teaser USING (article)
    JOIN podcast USING (article) JOIN gallery USING (article) JOIN poll USING (article) JOIN map USING (article) JOIN
    event USING (article) JOIN topic USING (article) JOIN tone USING (article) JOIN rating USING (article) JOIN
    edition USING (article) JOIN correction USING (article) JOIN source_list USING (article) JOIN embargo USING
    (article) JOIN print_page USING (article) JOIN byline USING (article) JOIN headline USING (article) JOIN
    summary_text USING (article) JOIN thumbnail USING (article) JOIN caption USING (article) JOIN credit USING
    (article) JOIN advert USING (article) JOIN newsletter USING (article) JOIN push_note USING (article) JOIN
    share_count USING (article) JOIN reading_time USING (article) JOIN archive_box USING (article);
