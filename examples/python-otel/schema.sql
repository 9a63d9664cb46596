CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL);
CREATE TABLE review (id INT PRIMARY KEY, item_id INT NOT NULL, stars INT NOT NULL);
CREATE INDEX review_item ON review (item_id);
INSERT INTO item VALUES (1, 'anvil'), (2, 'bellows'), (3, 'chisel'), (4, 'drill'), (5, 'ewer');
INSERT INTO review VALUES (1, 1, 5), (2, 1, 4), (3, 2, 3), (4, 4, 5), (5, 4, 1), (6, 4, 2);
