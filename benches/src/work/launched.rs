//! Round trips between processes of a launcher, compared with NetPIPE's modules for the same libraries.

use super::{Better, Launcher, Task, Unit, Work};

/// OpenMPI over shared memory on one machine; MPI waits by spinning.
pub static MPI: Work = Work {
    id: "mpi",
    title: "MPI round trip, 1 byte, two processes of mpirun",
    task: Task::Launched { by: Launcher::Mpi, bytes: 1 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[],
};

/// PVM, by the direct route between two tasks.
pub static PVM: Work = Work {
    id: "pvm",
    title: "PVM round trip, 1 byte, two tasks",
    task: Task::Launched { by: Launcher::Pvm, bytes: 1 },
    unit: Unit::Nanoseconds,
    better: Better::Lower,
    goals: &[],
};
