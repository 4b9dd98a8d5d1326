//! Transports whose two ends a launcher starts: the process is the worker itself, and its library is opened at run
//! time.

mod exclusive;
pub mod mpi;
pub mod pvm;
