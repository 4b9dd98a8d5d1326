//! Servers of other programs in public: whoever reaches them reaches nothing of the agent.

use std::net::TcpStream;
use std::process::Command;

use program::peers::free_port;
use program::{Agent, Sandbox, binary};

#[test]
fn a_server_of_another_program_in_public_opens_no_control() {
    let (sandbox, port) = (Sandbox::new(), free_port());
    let speak = format!("iperf3={port}");
    let public = ["--speak", &speak, "--speak-listen", "0.0.0.0"];
    let said = sandbox.run(&[&["serve", "--listen", "127.0.0.1:0"][..], &public].concat()).ended_with(2).message();
    assert!(said.contains("--speak-open"), "{said}");
    // Nor does its flag open the agent's own port.
    let said =
        sandbox.run(&["serve", "--listen", "0.0.0.0:0", "--speak", &speak, "--speak-open"]).ended_with(2).message();
    assert!(said.contains("--token-file") && said.contains("--open"), "{said}");

    let flags = [&["--listen", "127.0.0.1:0"][..], &public, &["--speak-open"]].concat();
    let agent = Agent::spawn(Command::new(binary::thru()), &flags);
    // An address at which only a listener on all addresses is reached.
    TcpStream::connect(format!("127.0.0.2:{port}")).unwrap();
    assert!(TcpStream::connect(format!("127.0.0.2:{}", agent.port())).is_err(), "{}", agent.log());
    let host = format!("127.0.0.2:{port}");
    let said = sandbox.run(&["tune", "show", &host]).ended_with(3);
    assert!(said.stdout.is_empty(), "{}", said.stdout);
}
