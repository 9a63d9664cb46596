-- Run before the load: what only the very first statement has to do (reading definitions, opening files) is no part of
-- the incident. The decoy's table is left cold.
USE forum;
SELECT r.body, COUNT(*) FROM reaction r JOIN author USING (article) JOIN section USING (article) JOIN region USING
(article) JOIN language USING (article) JOIN licence USING (article) JOIN editor USING (article) JOIN photographer
USING (article) JOIN translator USING (article) JOIN agency USING (article) JOIN sponsor USING (article) JOIN series
USING (article) JOIN issue USING (article) JOIN template USING (article) JOIN paywall USING (article) JOIN teaser
USING (article) JOIN podcast USING (article) JOIN gallery USING (article) JOIN poll USING (article) JOIN map USING
(article) JOIN event USING (article) JOIN topic USING (article) JOIN tone USING (article) JOIN rating USING
(article) JOIN edition USING (article) JOIN correction USING (article) JOIN source_list USING (article) JOIN embargo
USING (article) JOIN print_page USING (article) JOIN byline USING (article) JOIN headline USING (article) JOIN
summary_text USING (article) JOIN thumbnail USING (article) JOIN caption USING (article) JOIN credit USING (article)
JOIN advert USING (article) JOIN newsletter USING (article) JOIN push_note USING (article) JOIN share_count USING
(article) JOIN reading_time USING (article) JOIN archive_box USING (article) WHERE r.article = 1 GROUP BY r.body;
