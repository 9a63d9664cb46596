//! The tables of every draw, and what each operation asks of them: the same for load, both apps and every engine.

use crate::load::Operation;
use crate::topology::Engine;

/// Rows of `item`.
pub const ITEMS: u64 = 60_000;
/// Values of `item.category`: a hundred items each.
pub const CATEGORIES: u64 = 600;
/// Rows of `customer`.
pub const CUSTOMERS: u64 = 5_000;
/// Values of `customer.region`: a hundred customers each.
pub const REGIONS: u64 = 50;
/// Rows of `orders` in the beginning: twenty for each customer.
pub const ORDERS: u64 = 100_000;
/// Rows of `document`: 120 MB, twice what the servers cache.
pub const DOCUMENTS: u64 = 60_000;
/// Rows of `article`, each with a value of 10 kB.
pub const ARTICLES: u64 = 4_000;

/// What goes where the operation's number stands.
pub const ID: &str = "{id}";

/// The greatest number that an operation asks for; the smallest is 1.
pub fn largest_id(operation: Operation) -> u64 {
    match operation {
        Operation::Item | Operation::Order => ITEMS,
        Operation::Category => CATEGORIES,
        Operation::History => CUSTOMERS,
        Operation::Document => DOCUMENTS,
        Operation::Report => REGIONS,
        Operation::Sales => 1_000,
    }
}

/// The statements of one request, with [`ID`] where its number stands. More than one is a transaction.
pub fn of_operation(operation: Operation) -> &'static [&'static str] {
    match operation {
        Operation::Item => &["SELECT id, name, stock, price FROM item WHERE id = {id}"],
        Operation::Category => &["SELECT COUNT(*), SUM(stock), MAX(price) FROM item WHERE category = {id}"],
        Operation::History => {
            &["SELECT id, item, quantity, note FROM orders WHERE customer = {id} ORDER BY id DESC LIMIT 10"]
        }
        Operation::Order => &[
            "INSERT INTO orders (customer, item, quantity, note) VALUES (1 + {id} % 5000, {id}, 1, 'by the shop')",
            "UPDATE item SET stock = stock - 1 WHERE id = {id}",
        ],
        Operation::Document => &["SELECT body FROM document WHERE id = {id}"],
        Operation::Report => &["SELECT o.quantity, COUNT(*) FROM customer c JOIN orders o ON o.customer = c.id \
             WHERE c.region = {id} GROUP BY o.quantity"],
        Operation::Sales => {
            &["SELECT customer, SUM(quantity) FROM orders WHERE id > {id} GROUP BY customer ORDER BY 2 DESC LIMIT 10"]
        }
    }
}

/// The statement of [`Operation::History`] after a release: it computes with the column of the index, which then no longer
/// helps.
pub const RELEASED: &str =
    "SELECT id, item, quantity, note FROM orders WHERE customer + 0 = {id} ORDER BY id DESC LIMIT 10";

/// Statements that make and fill the tables of database `shop`, once for each server.
pub fn schema(engine: Engine) -> Vec<String> {
    let is_mysql = engine.is_mysql();
    let (serial, suffix) = if is_mysql {
        ("INT NOT NULL AUTO_INCREMENT PRIMARY KEY", " ENGINE=InnoDB")
    } else {
        ("SERIAL PRIMARY KEY", "")
    };
    let numbers = |count: u64| if is_mysql { mysql_numbers(count) } else { format!("generate_series(1, {count}) n") };
    let md5 = |of: &str| if is_mysql { format!("MD5({of})") } else { format!("md5(({of})::text)") };
    let tables = [
        "item (id INT PRIMARY KEY, category INT NOT NULL, name VARCHAR(60) NOT NULL, stock INT NOT NULL, price INT NOT NULL)".to_owned(),
        "customer (id INT PRIMARY KEY, region INT NOT NULL, name VARCHAR(60) NOT NULL)".to_owned(),
        format!("orders (id {serial}, customer INT NOT NULL, item INT NOT NULL, quantity INT NOT NULL, note VARCHAR(200) NOT NULL)"),
        "document (id INT PRIMARY KEY, body TEXT NOT NULL)".to_owned(),
        format!("article (id INT PRIMARY KEY, seen INT NOT NULL, body {} NOT NULL)", if is_mysql { "MEDIUMTEXT" } else { "TEXT" }),
        "daily (day INT PRIMARY KEY, orders INT NOT NULL)".to_owned(),
    ];
    let mut all: Vec<String> = tables.iter().map(|table| format!("CREATE TABLE {table}{suffix}")).collect();
    if !is_mysql {
        all.push("ALTER TABLE article ALTER body SET STORAGE EXTERNAL".to_owned());
    }
    all.extend([
        format!("INSERT INTO item SELECT n, 1 + n % {CATEGORIES}, CONCAT('item ', {}), 1000000, 100 + n % 900 FROM {}", md5("n"), numbers(ITEMS)),
        format!("INSERT INTO customer SELECT n, 1 + n % {REGIONS}, CONCAT('customer ', {}) FROM {}", md5("n"), numbers(CUSTOMERS)),
        format!(
            "INSERT INTO orders (customer, item, quantity, note) SELECT 1 + n % {CUSTOMERS}, 1 + n % {ITEMS}, 1 + n % 9, CONCAT('order ', {}, {}) FROM {}",
            md5("n"), md5("n + 1"), numbers(ORDERS)
        ),
        format!("INSERT INTO document SELECT n, CONCAT(n, REPEAT({}, 58)) FROM {}", md5("n"), numbers(DOCUMENTS)),
        format!("INSERT INTO article SELECT n, 0, CONCAT(n, REPEAT({}, 310)) FROM {}", md5("n"), numbers(ARTICLES)),
        "INSERT INTO daily VALUES (1, 0)".to_owned(),
        "CREATE INDEX item_category ON item (category)".to_owned(),
        "CREATE INDEX orders_customer ON orders (customer)".to_owned(),
        "CREATE INDEX customer_region ON customer (region)".to_owned(),
    ]);
    let analyze = if is_mysql { "ANALYZE TABLE item, customer, orders, document" } else { "ANALYZE" };
    all.push(analyze.to_owned());
    all
}

/// Numbers from 1 on without a table of them: MySQL 5.6 has neither sequences nor recursion.
fn mysql_numbers(count: u64) -> String {
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    format!(
        "(SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d AS n \
         FROM {digits} a, {digits} b, {digits} c, {digits} e, {digits} f HAVING n <= {count}) numbers"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_statements_with_its_number() {
        for operation in Operation::ALL {
            assert!(of_operation(operation).iter().all(|sql| sql.contains(ID)), "{operation:?}");
        }
        assert!(schema(Engine::Postgresql).iter().any(|sql| sql.contains("generate_series(1, 60000)")));
    }
}
