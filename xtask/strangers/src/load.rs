//! The load of a draw: a rate, its shape, and a mix of operations. It does not write the scenario: that is `scenario`.

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::topology::{App, Between, Data, Storage, Topology};

/// Connections of the generator to a database that makes each a session: PostgreSQL's sessions take memory that its
/// files are then read for, and a pooler in session mode gives each a server connection.
pub const SESSIONS: u32 = 40;

/// How the rate goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Evenly spaced.
    Even,
    /// Independent users.
    Poisson,
    /// A slow rise by half over the draw, which the service carries.
    Ramp,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Reads an item by its key.
    Item,
    /// Adds up the items of a category, by an index.
    Category,
    /// Reads the last orders of a customer, by an index.
    History,
    /// Inserts an order and takes it from the item's stock.
    Order,
    /// Reads a document of 2 kB from a table larger than the server's cache.
    Document,
    /// Groups the orders of a region by a join.
    Report,
    /// Adds up all orders by customer: a dear report that no index helps.
    Sales,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 7] =
        [Self::Item, Self::Category, Self::History, Self::Order, Self::Document, Self::Report, Self::Sales];

    /// Its name in scenario, app and tables.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An operation and how often it is drawn beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What.
    pub operation: Operation,
    /// How often, 1 to 100.
    pub weight: u32,
}

/// A load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Requests per second.
    pub rate: f64,
    /// How the rate goes.
    pub shape: Shape,
    /// What requests do.
    pub mix: Vec<Share>,
    /// Connections of the generator at most.
    pub connections: u32,
    /// Whether the scenario has objectives.
    pub has_objectives: bool,
}

impl Load {
    /// A load that `topology` carries on a machine of two cores, by its stream of numbers.
    pub fn draw(random: &mut Random, topology: &Topology) -> Self {
        let rate = random.geometric(20.0, Self::most(topology.app)).round();
        let shape = random.weighted(&[(Shape::Even, 2.0), (Shape::Poisson, 3.0), (Shape::Ramp, 1.0)], Shape::Even);
        let mut weights = vec![
            (Operation::Item, random.between(2.0, 8.0)),
            (Operation::Category, random.between(0.0, 3.0)),
            (Operation::History, random.between(0.5, 4.0)),
            (Operation::Order, random.between(0.0, 3.0)),
        ];
        if topology.data == Data::OutOfCache {
            // Each read of a document is about one read of the disk: a throttled disk carries 100/s with room.
            let reads = if topology.storage == Storage::Throttled { 60.0 } else { 200.0 };
            let others: f64 = weights.iter().map(|(_, weight)| weight).sum();
            let share = (reads / rate).min(0.4);
            weights.push((Operation::Document, others * share / (1.0 - share)));
        }
        let mix = weights
            .into_iter()
            .map(|(operation, weight)| Share { operation, weight: (weight * 10.0).round() as u32 })
            .filter(|share| share.weight > 0)
            .collect();
        let connections = match (topology.app, topology.data) {
            (App::None, _) if topology.between == Between::PoolerSession => SESSIONS,
            (App::None, Data::OutOfCache) => SESSIONS,
            (App::None, Data::InCache) => 120,
            _ => 400,
        };
        Self { rate, shape, mix, connections, has_objectives: random.chance(0.3) }
    }

    /// Requests per second that an app carries on a machine of two cores.
    pub fn most(app: App) -> f64 {
        match app {
            App::None => 2_000.0,
            App::Rust => 600.0,
            App::Python => 160.0,
            App::Flask => 80.0,
            App::Express | App::Spring => 200.0,
        }
    }

    /// Makes `operation` at least `share` (0-1) of the requests.
    pub fn ensure(&mut self, operation: Operation, share: f64) {
        let others: u32 = self.mix.iter().filter(|s| s.operation != operation).map(|s| s.weight).sum();
        let least = (f64::from(others) * share / (1.0 - share)).ceil().max(1.0) as u32;
        match self.mix.iter_mut().find(|s| s.operation == operation) {
            Some(found) => found.weight = found.weight.max(least),
            None => self.mix.push(Share { operation, weight: least }),
        }
    }

    /// Lowers the rate to at most `rate`.
    pub fn at_most(&mut self, rate: f64) {
        self.rate = self.rate.min(rate);
    }

    /// Raises the rate to at least `rate`.
    pub fn at_least(&mut self, rate: f64) {
        self.rate = self.rate.max(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_gets_its_share() {
        let mix = vec![Share { operation: Operation::Item, weight: 60 }];
        let mut load = Load { rate: 50.0, shape: Shape::Even, mix, connections: 10, has_objectives: false };
        load.ensure(Operation::Order, 0.4);
        assert_eq!(load.mix[1], Share { operation: Operation::Order, weight: 40 });
        load.ensure(Operation::Order, 0.1);
        assert_eq!(load.mix[1].weight, 40);
        load.at_most(30.0);
        load.at_least(40.0);
        assert!((load.rate - 40.0).abs() < 1e-9);
    }
}
