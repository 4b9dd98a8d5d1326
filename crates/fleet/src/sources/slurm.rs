//! The hosts of Slurm: a node list, the nodes of a job, or those of a partition.

use super::source::{FleetSource, output_of};
use command::Failure;
use plan::fleet::HostListError;
use plan::fleet::hostlist;
use plan::{Fleet, FleetHost};

pub(super) const SOURCE: FleetSource =
    FleetSource { name: "slurm", what: "NODELIST, @PARTITION, or nothing in a job", read };

/// The node list of the job that runs this command.
const JOB: &str = "SLURM_JOB_NODELIST";

fn read(named: &str) -> Result<Fleet, Failure> {
    let list = match (named.strip_prefix('@'), named) {
        (Some(partition), _) => output_of("sinfo", &["--noheader", "--partition", partition, "--format", "%N"])?,
        (None, "") => std::env::var(JOB).map_err(|_| {
            Failure::usage(format!(
                "slurm: without a node list works only in a job, but {JOB} is not set: name the nodes"
            ))
        })?,
        (None, list) => list.to_owned(),
    };
    parse(&list).map_err(Failure::usage)
}

/// The fleet of a node list.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(list: &str) -> Result<Fleet, HostListError> {
    let names = hostlist::expand(list.trim())?;
    Ok(Fleet { hosts: names.iter().map(|name| FleetHost::named(name)).collect(), ..Fleet::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_list_names_hosts() {
        let fleet = read("tux[08-10],login").unwrap();
        assert_eq!(
            fleet.hosts.iter().map(|host| host.control.as_str()).collect::<Vec<_>>(),
            ["tux08", "tux09", "tux10", "login"]
        );
        assert!(read("tux[8").unwrap_err().to_string().contains("[ without ]"));
    }
}
