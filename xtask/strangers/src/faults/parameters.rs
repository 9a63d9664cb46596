//! How a fault's figures follow from its intensity: from barely visible (0) to harsh (1).

/// One figure of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name, unit last.
    pub name: &'static str,
    /// At intensity 0.
    pub mild: f64,
    /// At intensity 1. Between the two each step of intensity multiplies by the same factor.
    pub harsh: f64,
}

impl Parameter {
    /// A figure between two positive numbers.
    pub const fn new(name: &'static str, mild: f64, harsh: f64) -> Self {
        Self { name, mild, harsh }
    }

    fn at(&self, intensity: f64) -> f64 {
        self.mild * (self.harsh / self.mild).powf(intensity.clamp(0.0, 1.0))
    }
}

/// The figures of a fault at one intensity.
#[derive(Clone, Debug, PartialEq)]
pub struct Values(Vec<(&'static str, f64)>);

impl Values {
    /// Those of `parameters` at `intensity`.
    pub fn at(parameters: &[Parameter], intensity: f64) -> Self {
        Self(parameters.iter().map(|parameter| (parameter.name, parameter.at(intensity))).collect())
    }

    /// The figure of that name; not a number if the fault has none, which a test rules out.
    pub fn get(&self, name: &str) -> f64 {
        self.0.iter().find(|(own, _)| *own == name).map_or(f64::NAN, |(_, value)| *value)
    }

    /// All of them, for the record of a draw.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0.iter().copied()
    }
}
