-- Run before the load: what only the very first statement has to do (reading definitions, opening files) is no part of
-- the incident. The decoy's table is left cold.
USE forum;
SELECT r.body, COUNT(*) FROM reaction r JOIN author USING (article) JOIN section USING (article) JOIN region USING
(article) JOIN language USING (article) JOIN licence USING (article) JOIN editor USING (article) JOIN photographer
USING (article) JOIN translator USING (article) JOIN agency USING (article) JOIN sponsor USING (article) JOIN series
USING (article) JOIN issue USING (article) JOIN template USING (article) JOIN paywall USING (article) JOIN teaser
USING (article) JOIN podcast USING (article) JOIN gallery USING (article) JOIN poll USING (article) JOIN map USING
(article) JOIN event USING (article) JOIN topic USING (article) JOIN tone USING (article) JOIN rating USING
(article) JOIN edition USING (article) WHERE r.article = 1 GROUP BY r.body;
