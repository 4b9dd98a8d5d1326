//! Every stack in the running kernel: registered, used, unregistered. As root; a registration holds for the whole
//! kernel, so these tests take turns, also with those of other processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test stops at the first surprise")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use socket2::SockRef;
use stacks::{HeldRegistrations, STACKS, StackError, StackRequest, available, load, missing_rights, obstacle};

use crate::manual;

/// The turn of a test; `None`, and a line with the reason, if it cannot be tested.
fn turn(test: &str) -> Option<File> {
    if let Some(missing) = missing_rights().or_else(obstacle) {
        println!("SKIPPED: {test}: no TCP stacks here: {missing}");
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("throughline-stacks.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    Some(lock)
}

fn request(text: &str) -> StackRequest {
    StackRequest::parse(text).unwrap().unwrap()
}

/// Carries 4 MiB over loopback with a congestion control, and returns the socket's name for it.
fn carry(cc: &str) -> String {
    const BYTES: usize = 4 << 20;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    SockRef::from(&near).set_tcp_congestion(cc.as_bytes()).unwrap();
    let name = SockRef::from(&near).tcp_congestion().unwrap();
    let sender = thread::spawn(move || near.write_all(&vec![7; BYTES]).unwrap());
    let mut arrived = Vec::new();
    far.read_to_end(&mut arrived).unwrap();
    sender.join().unwrap();
    assert_eq!(arrived.len(), BYTES);
    String::from_utf8(name).unwrap().trim_end_matches('\0').to_owned()
}

#[test]
fn each_stack_is_registered_carries_data_and_is_unregistered() {
    let Some(_turn) = turn("each_stack_is_registered_carries_data_and_is_unregistered") else { return };
    for stack in STACKS {
        // A parameter of its own distinguishes it from a loaded one.
        let parameter = &stack.parameters().unwrap()[0];
        let value = parameter.shown(parameter.least.max(1));
        let request = request(&format!("{}:{}={value}", stack.name, parameter.name));
        let name = request.kernel_name();
        let loaded = load(&request, false).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(loaded.name(), name);
        assert!(available().contains(&name));
        assert!(matches!(load(&request, false), Err(StackError::Exists { .. })));
        assert_eq!(carry(&name), name);
        drop(loaded);
        assert!(!available().contains(&name), "{name} is still there");
    }
}

#[test]
fn a_held_registration_is_loaded_once_and_ends_with_its_owner() {
    let Some(_turn) = turn("a_held_registration_is_loaded_once_and_ends_with_its_owner") else { return };
    let (mut first, mut second) = (HeldRegistrations::default(), HeldRegistrations::default());
    let request = request("aimd:a=3.5");
    let name = first.ensure(&request, false).unwrap();
    assert_eq!(first.ensure(&request, false).unwrap(), name);
    // So does another owner's.
    assert_eq!(second.ensure(&request, false).unwrap(), name);
    drop(first);
    assert!(!available().contains(&name));
    assert_eq!(second.ensure(&request, false).unwrap(), name, "now it is this one's turn to load it");
    assert!(available().contains(&name));
    drop(second);
    assert!(!available().contains(&name));
}

/// A stack's object under another name, as a file that a user has compiled.
fn file(folder: &Path, stack: &str, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> StackRequest {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("objects").join(format!("{stack}.bpf.o"));
    let mut object = std::fs::read(kept).unwrap();
    let (old, mut new) = (format!("bpf_{stack}"), name.as_bytes().to_vec());
    new.resize(old.len(), 0);
    let at = object.windows(old.len()).position(|bytes| bytes == old.as_bytes()).unwrap();
    object[at..at + old.len()].copy_from_slice(&new);
    change(&mut object);
    let path = folder.join(format!("{stack}-{name}.bpf.o"));
    std::fs::write(&path, object).unwrap();
    StackRequest::open(path.to_str().unwrap()).unwrap()
}

#[test]
fn another_one_of_the_same_name_is_not_taken_for_it() {
    let Some(_turn) = turn("another_one_of_the_same_name_is_not_taken_for_it") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mine = file(folder.path(), "aimd", "bpf_twin", |_| {});
    let other = file(folder.path(), "scalable", "bpf_twin", |_| {});
    // The same programs with another default: what an earlier version may have had.
    let [old, new] =
        [500_u32, 400].map(|b| [b"b".as_slice(), &[0; 11], &1_000_u32.to_le_bytes(), &b.to_le_bytes()].concat());
    let earlier = file(folder.path(), "aimd", "bpf_twin", |object| {
        let at = object.windows(old.len()).position(|bytes| bytes == old).unwrap();
        object[at..at + new.len()].copy_from_slice(&new);
    });
    let loaded = load(&mine, true).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.name(), "bpf_twin");
    // Whether any user may choose it makes no difference.
    assert!(matches!(load(&mine, false), Err(StackError::Exists { .. })));
    assert_eq!(HeldRegistrations::default().ensure(&mine, false).unwrap(), "bpf_twin");
    for different in [&other, &earlier] {
        let error = HeldRegistrations::default().ensure(different, false).unwrap_err();
        assert!(matches!(error, StackError::Taken { found: true, .. }), "{error}");
        assert!(error.to_string().contains("thru stacks unload bpf_twin"), "{error}");
    }
    drop(loaded);
    assert_eq!(HeldRegistrations::default().ensure(&other, false).unwrap(), "bpf_twin");
    // A registration without a BPF program cannot be compared.
    let reno = file(folder.path(), "aimd", "reno", |_| {});
    assert!(matches!(load(&reno, false), Err(StackError::Taken { found: false, .. })));
}

#[test]
fn a_rule_gives_connections_to_its_destination_their_buffers() {
    let Some(_turn) = turn("a_rule_gives_connections_to_its_destination_their_buffers") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wad.toml");
    let text =
        "[here]\ndst_addr = '127.0.0.0/8'\nsndbuf = 65536\n\n[there]\ndst_addr = '192.0.2.0/24'\nsndbuf = 32768\n";
    std::fs::write(&file, text).unwrap();
    let request = request("highspeed").with_rules(&stacks::read_rules(&file).unwrap()).unwrap();
    let loaded = load(&request, false).unwrap_or_else(|error| panic!("{error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    SockRef::from(&near).set_tcp_congestion(loaded.name().as_bytes()).unwrap();
    // The kernel doubles the requested size (socket(7)).
    assert_eq!(SockRef::from(&near).send_buffer_size().unwrap(), 131_072);
}

#[test]
fn the_stack_of_the_manual_compiles_and_loads() {
    let test = "the_stack_of_the_manual_compiles_and_loads";
    let Some(_turn) = turn(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [source, object] = ["mine.bpf.c", "mine.bpf.o"].map(|name| folder.path().join(name));
    std::fs::write(&source, manual::example()).unwrap();
    std::fs::write(folder.path().join("stack.h"), stacks::HEADER).unwrap();
    let mut clang = Command::new("clang");
    clang
        .args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"])
        .arg(&source)
        .arg("-o")
        .arg(&object);
    match clang.status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            println!("SKIPPED: {test}: clang: {error}");
            return;
        }
    }
    let request = StackRequest::open(&format!("{}:air=0.05", object.display())).unwrap();
    let loaded = load(&request, false).unwrap_or_else(|error| panic!("{error}"));
    assert!(loaded.name().starts_with("bpf_mine_"));
    assert_eq!(carry(loaded.name()), loaded.name());
}
