//! Topologies: their files, and those of the program.

mod read;
#[cfg(test)]
mod tests;

pub use read::read;

/// A topology that comes with the program.
pub struct Ready {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! ready {
    ($($name:literal),* $(,)?) => {
        [$(Ready { name: $name, text: include_str!(concat!("../../topologies/", $name, ".toml")) }),*]
    };
}

/// All of them.
pub const READY: [Ready; 7] =
    ready!["crossover", "switch", "nordunet-2002", "sunnyvale-geneva", "wifi", "dsl", "satellite"];
