-- The models of a search index: a document of 10 kB each, and what happened to it lately.
CREATE EXTENSION pg_stat_statements;

CREATE TABLE article (
    id int PRIMARY KEY,
    seen bigint NOT NULL DEFAULT 0,
    body text NOT NULL
);
-- Out of line and as it is: 10,240 bytes are six rows of the TOAST table, at 1,996 bytes each.
ALTER TABLE article ALTER COLUMN body SET STORAGE EXTERNAL;
-- Vacuum comes early, as who has much to clean up sets it: at one dead row of the TOAST table in two hundred.
ALTER TABLE article SET (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.005);
INSERT INTO article (id, body) SELECT n, :'document' FROM generate_series(1, 30000) AS n;

-- Eight remarks on each, one after the other: by the index ten articles' are a few pages.
CREATE TABLE remark (
    id int PRIMARY KEY,
    article int NOT NULL,
    words text NOT NULL
);
INSERT INTO remark SELECT n, 1 + n / 8, 'well said' FROM generate_series(1, 239999) AS n;
CREATE INDEX remark_article ON remark (article);

CREATE ROLE app LOGIN;
GRANT SELECT, UPDATE ON article, remark TO app;

-- All that holdup needs: it can change nothing. What it asks the planner of app's statements it may see of app's tables.
CREATE ROLE holdup LOGIN;
GRANT pg_monitor TO holdup;
GRANT pg_read_all_data TO holdup;

VACUUM (FREEZE, ANALYZE);
CHECKPOINT;
