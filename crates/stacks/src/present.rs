//! What this kernel has and can load.

use crate::kept::kept;
use crate::kernel::{available, missing_rights, obstacle};
use crate::{BUILT, STACKS, StackError};

/// The congestion controls of this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentStacks {
    /// Loaded stacks by their names in the kernel, with a remark on those that `keep` loaded.
    pub loaded: Vec<String>,
    /// The kernel's own.
    pub others: Vec<String>,
}

impl PresentStacks {
    /// The stacks of this program, one a line, then what the kernel has; the reason if none of them can be loaded here.
    #[must_use]
    pub fn listing(&self) -> String {
        let mut text: String = STACKS.iter().map(|stack| format!("{:<10} {}\n", stack.name, stack.title)).collect();
        let loaded = if self.loaded.is_empty() { "none".into() } else { self.loaded.join(", ") };
        text += &format!("\n{:<10} {loaded}\n{:<10} {}\n", "loaded", "kernel's", self.others.join(", "));
        prevented().map_or(text.clone(), |error| format!("{text}\n{error}\n"))
    }
}

/// What is there now.
#[must_use]
pub fn present() -> PresentStacks {
    among(available(), &kept())
}

fn among(available: Vec<String>, kept: &[String]) -> PresentStacks {
    let lost: Vec<&String> = kept.iter().filter(|name| !available.contains(name)).collect();
    let lost = lost.into_iter().map(|name| format!("{name} (registered, but not in the kernel)")).collect::<Vec<_>>();
    let (ours, others): (Vec<String>, _) = available.into_iter().partition(|name| name.starts_with("bpf_"));
    let remark = |name: String| if kept.contains(&name) { format!("{name} (until unload)") } else { name };
    PresentStacks { loaded: ours.into_iter().map(remark).chain(lost).collect(), others }
}

/// Why no stack can be loaded here; `None` if nothing prevents it.
#[must_use]
pub fn prevented() -> Option<StackError> {
    if !BUILT {
        return Some(StackError::NotBuilt);
    }
    let rights = || missing_rights().map(|missing| StackError::Rights { requested: "NAME".into(), missing });
    obstacle().map(|what| StackError::Kernel { what }).or_else(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_stacks_are_told_from_the_kernels_own() {
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<String>>();
        let found = among(names(&["reno", "bpf_fast", "bpf_htcp", "cubic"]), &names(&["bpf_htcp", "bpf_aimd"]));
        let loaded = ["bpf_fast", "bpf_htcp (until unload)", "bpf_aimd (registered, but not in the kernel)"];
        assert_eq!(found, PresentStacks { loaded: names(&loaded), others: names(&["reno", "cubic"]) });
    }
}
