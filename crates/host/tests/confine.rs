//! What a confined process can no longer do. It has its own main function: rights are given up before a process has threads.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test stops at the first surprise and prints its list")]

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::Command;

use host::confine::{self, Files, Restricted, User};
use rustix::thread::CapabilitySet;

const NAME: &str = "a_confined_process_keeps_only_what_it_was_left";
const HELPER: &str = "a_helper_keeps_its_capabilities_and_changes_no_system";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // What nextest and cargo ask of a test program.
    if args.iter().any(|arg| arg == "--list") {
        if !args.iter().any(|arg| arg == "--ignored") {
            println!("{NAME}: test\n{HELPER}: test");
        }
        return;
    }
    // Without a name both run, the second one in a process of its own: what is given up stays so.
    let named = |name: &str| args.iter().any(|arg| arg == name);
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: {NAME}, {HELPER}: they need root");
    } else if named(HELPER) {
        helper();
    } else {
        if !named(NAME) {
            assert!(Command::new(&args[0]).arg(HELPER).status().unwrap().success());
        }
        confined();
    }
}

fn helper() {
    let kept = CapabilitySet::NET_ADMIN;
    if !confine::keep_for_helper(kept).unwrap() {
        return println!("SKIPPED: {HELPER}: this kernel has no filters of system calls");
    }
    let sets = rustix::thread::capabilities(None).unwrap();
    assert_eq!((sets.permitted, sets.effective), (kept, kept));
    // A program of root would otherwise have all of them again.
    let status = Command::new("cat").arg("/proc/self/status").output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    for line in ["CapPrm:\t0000000000001000", "CapBnd:\t0000000000001000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    // Without the filter any user may do this.
    let opened = rustix::mount::open_tree(rustix::fs::CWD, "/", rustix::mount::OpenTreeFlags::OPEN_TREE_CLOEXEC);
    assert_eq!(opened.map(drop), Err(rustix::io::Errno::PERM));
}

fn confined() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("own"), folder.path().join("other"));
    for path in [&own, &other] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("file"), "text").unwrap();
    }
    let nobody = User::find("nobody").unwrap().unwrap();
    for path in [folder.path(), &own, &other, &own.join("file"), &other.join("file")] {
        confine::give(path, &nobody).unwrap();
    }
    let kept = CapabilitySet::NET_BIND_SERVICE;
    confine::become_user(&nobody, kept).unwrap();
    // Root is gone for good, for programs that it starts too, and the one capability stays with this process.
    assert_eq!(fs::read("/etc/shadow").unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert!(
        rustix::thread::set_thread_res_uid(
            rustix::process::Uid::ROOT,
            rustix::process::Uid::ROOT,
            rustix::process::Uid::ROOT
        )
        .is_err()
    );
    assert_eq!(rustix::thread::capabilities(None).unwrap().permitted, kept);
    let status = Command::new("cat").arg("/proc/self/status").output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{status}");
    }
    drop(TcpListener::bind("127.0.0.1:79").unwrap());
    confine::keep_capabilities(CapabilitySet::empty()).unwrap();
    assert_eq!(TcpListener::bind("127.0.0.1:79").unwrap_err().kind(), ErrorKind::PermissionDenied);

    let files = Files {
        read: vec!["/proc".into(), "/usr".into(), "/nowhere".into()],
        devices: vec!["/dev/null".into()],
        folders: vec![own.clone()],
    };
    match confine::restrict_files(&files).unwrap() {
        Restricted::Fully | Restricted::Partly => {}
        Restricted::Not => return println!("SKIPPED: {NAME}: this kernel has no Landlock"),
    }
    // Its user owns both folders, and it is left one.
    let denied = |result: std::io::Result<()>| result.unwrap_err().kind() == ErrorKind::PermissionDenied;
    assert!(denied(fs::read(other.join("file")).map(drop)) && denied(fs::write(other.join("new"), "")));
    assert!(denied(fs::remove_file(other.join("file"))) && denied(fs::read_dir(&other).map(drop)));
    fs::write(own.join("new"), "text").unwrap();
    fs::remove_file(own.join("file")).unwrap();
    fs::write("/dev/null", "x").unwrap();
    assert!(denied(fs::write("/dev/full", "x")));
    assert!(fs::read("/proc/self/stat").is_ok() && denied(fs::read("/etc/passwd").map(drop)));
    // What has its own folder removes it.
    fs::remove_file(own.join("new")).unwrap();
    fs::remove_dir(&own).unwrap();
    // Limits of memory hold for what it allocates from now on.
    confine::limit_memory_and_tasks(64 << 20, None).unwrap();
    let mut large: Vec<u8> = Vec::new();
    assert!(large.try_reserve_exact(256 << 20).is_err());
}
