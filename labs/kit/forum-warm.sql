-- Run before the load: what only the very first statement has to do (reading definitions, opening files) is no part of
-- the incident. The decoy's table is left cold.
USE forum;
SELECT body, COUNT(*) FROM page WHERE article = 1 GROUP BY body;
