//! The properties of a host, and the CPU time of its cores.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Device, SelfTestCitation};

/// The inventory of a host. A source that cannot be read is null or absent, never zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Inventory {
    /// Node name.
    pub hostname: Option<String>,
    /// Kernel release, such as `6.1.0-18-amd64`.
    pub kernel: Option<String>,
    /// Kernel build line.
    pub kernel_version: Option<String>,
    /// Machine architecture.
    pub arch: Option<String>,
    /// Distribution, from os-release.
    pub os: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Processors online.
    pub cores: Option<u32>,
    /// NUMA nodes.
    pub numa_nodes: Option<u32>,
    /// Physical memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory available for new work when the inventory was taken, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Frequency governor of core 0.
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Hypervisor or container, if it can be detected.
    pub virtualisation: Option<String>,
    /// Identifies this boot of the kernel: two ends with the same one share a machine.
    pub boot_id: Option<String>,
    /// Congestion controls that a socket may use.
    pub congestion_controls: Vec<String>,
    /// Values of the network settings that affect a transfer, by sysctl name.
    pub sysctl: BTreeMap<String, String>,
    /// Network interfaces in this network namespace.
    pub interfaces: Vec<Interface>,
    /// The processors as lscpu shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<Processor>,
    /// How the kernel was built and started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_setup: Option<KernelSetup>,
    /// Limits of this process by control groups; null if no control group can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceLimits>,
    /// Huge pages: `transparent` (the current mode), and the number of pages by size in KiB, such as `2048kB: 64`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hugepages: BTreeMap<String, String>,
    /// Whether irqbalance runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irqbalance: Option<bool>,
    /// Profile of tuned; null if tuned does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuned_profile: Option<String>,
    /// The last self-test in this host's store; null if there is none.
    pub selftest: Option<SelfTestCitation>,
    /// What could not be read, and why.
    pub missing: Vec<String>,
}

/// One network interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Operational state, such as `up`.
    pub state: Option<String>,
    /// Speed in Mbit/s as the driver reports it.
    pub speed_mbps: Option<u32>,
    /// Duplex.
    pub duplex: Option<String>,
    /// Driver.
    pub driver: Option<String>,
    /// Transmit queue length in packets.
    pub txqueuelen: Option<u32>,
    /// Addresses with prefix length.
    pub addresses: Vec<String>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// NUMA node of the device.
    pub numa_node: Option<i32>,
    /// PCI slot.
    pub pci_slot: Option<String>,
    /// Further properties from the driver, the bus and the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
}

/// The processors as lscpu shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Processor {
    /// Vendor and model, by the names of /proc/cpuinfo: `vendor_id`, `cpu family`, `model`, `stepping`, `microcode`...
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub identity: BTreeMap<String, String>,
    /// Cores online, as the kernel lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<String>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Physical cores in each socket.
    pub cores_per_socket: Option<u32>,
    /// Threads of each core.
    pub threads_per_core: Option<u32>,
    /// Caches of core 0, such as `L1d: 32K`, `L3: 33792K`, in bytes.
    pub cache_bytes: BTreeMap<String, u64>,
    /// Flags that matter to a measurement: of the clock, the ciphers, wide copies and the hypervisor.
    pub flags: Vec<String>,
    /// The kernel's report on each known vulnerability and its mitigation.
    pub mitigations: BTreeMap<String, String>,
    /// Lowest frequency of the hardware, Hz.
    pub min_hz: Option<u64>,
    /// Highest frequency of the hardware, Hz.
    pub max_hz: Option<u64>,
    /// Frequency governors, by the cores of each policy, such as `0-15`.
    pub governors: BTreeMap<String, String>,
    /// Cores that the scheduler does not use by itself (isolcpus); empty for none.
    pub isolated: Option<String>,
    /// Cores of each NUMA node.
    pub node_cores: BTreeMap<String, String>,
}

/// How a kernel was built and started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct KernelSetup {
    /// Boot parameters that change a measurement: mitigations, idle states, isolated cores, clocks, memory.
    pub parameters: Vec<String>,
    /// Current preemption model: `none`, `voluntary`, `full` or `lazy`; the build's one if the kernel does not report it.
    pub preemption: Option<String>,
    /// Ticks per second of the kernel (CONFIG_HZ).
    pub hz: Option<u32>,
    /// The source of `hz`: the file with the kernel's configuration, or `deduced from the coarse clock`, which moves at each
    /// tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hz_source: Option<String>,
    /// How the kernel accounts CPU time; null if its configuration cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_accounting: Option<CpuAccounting>,
    /// Clock sources that the kernel could use.
    pub clock_sources: Vec<String>,
}

/// How a kernel accounts the time of its cores, which all figures of CPU time depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct CpuAccounting {
    /// The build's choice: `TICK_CPU_ACCOUNTING`, `VIRT_CPU_ACCOUNTING_GEN` or `VIRT_CPU_ACCOUNTING_NATIVE`.
    pub option: String,
    /// Cores whose time is measured at each change between user and kernel, as the kernel lists them, or `all`; null if each tick
    /// is charged whole to what it interrupts. With VIRT_CPU_ACCOUNTING_GEN these are the cores of nohz_full only.
    pub exact_cores: Option<String>,
    /// Whether interrupts are timed exactly (IRQ_TIME_ACCOUNTING) and not sampled by ticks.
    pub interrupts_timed: bool,
}

impl KernelSetup {
    /// Time between two ticks, ns; `None` if it is unknown.
    #[must_use]
    pub fn tick_ns(&self) -> Option<u64> {
        1_000_000_000_u64.checked_div(self.hz?.into())
    }
}

/// The limits of a process by all its control groups. Null means no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct ResourceLimits {
    /// Versions of the control groups that were read: `1`, `2` or `1 and 2`.
    pub version: String,
    /// Processor time, in cores.
    pub cpus: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Cores that it may run on, as the kernel lists them.
    pub cores: Option<String>,
}

/// CPU time of a host over a period, sampled by the kernel's ticks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CpuUse {
    /// Length of the period, ns.
    pub window_ns: u64,
    /// Smallest difference that the source can show, ns (USER_HZ; the kernel's tick may be shorter).
    pub resolution_ns: u64,
    /// The time of each core.
    pub cores: Vec<CoreUse>,
}

impl CpuUse {
    /// Busy time of all cores together, interrupts included, ns; time taken by the hypervisor is not included.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.cores.iter().map(|core| core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns).sum()
    }

    /// The largest share of the period in which one core was busy, and in which one handled softirqs; 0 to 1.
    #[must_use]
    pub fn busiest(&self) -> [f64; 2] {
        let window = self.window_ns.max(1) as f64;
        let most = |ns: fn(&CoreUse) -> u64| {
            let shares = self.cores.iter().map(|core| ns(core) as f64 / window);
            shares.fold(0.0, f64::max).min(1.0)
        };
        [most(|core| core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns), most(|core| core.softirq_ns)]
    }

    /// Busy cores on average; `None` for an empty period.
    #[must_use]
    pub fn busy_cores(&self) -> Option<f64> {
        (self.window_ns > 0).then(|| self.busy_ns() as f64 / self.window_ns as f64)
    }
}

/// One core's time over a period, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CoreUse {
    /// Core number.
    pub core: u32,
    /// In user space, nice included.
    pub user_ns: u64,
    /// In the kernel for a process.
    pub system_ns: u64,
    /// In hard interrupts.
    pub irq_ns: u64,
    /// In soft interrupts, which do most of the receive path's work.
    pub softirq_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Idle, waiting for I/O included.
    pub idle_ns: u64,
}
