//! Files of others that a user opens, and folders in which others may write.

use std::fs;
use std::os::unix::fs::symlink;

use program::Sandbox;

/// The one line of a command that refuses its input.
fn refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let ended = sandbox.run(args).ended_with(2);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    ended.message()
}

#[test]
fn a_host_is_no_option_of_ssh() {
    let sandbox = Sandbox::new();
    let option = "-oProxyCommand=touch${IFS}planted";
    fs::write(sandbox.path("name.toml"), format!("[[host]]\nname = \"{}\"\n", option.replace("${", "$ {"))).unwrap();
    fs::write(sandbox.path("ssh.toml"), "[[host]]\nname = \"a\"\nssh = \"me@-F/tmp/evil\"\n").unwrap();
    fs::write(sandbox.path("hosts.ini"), format!("[web]\na\nb ansible_host={option}\n")).unwrap();
    fs::write(sandbox.path("config"), "Host a\nHost b -V\n").unwrap();
    for (source, place) in [
        ("name.toml", "name.toml:2:8"),
        ("ssh.toml", "ssh.toml:2:8"),
        ("ansible:hosts.ini", "line 3"),
        ("ssh:config", "config:2"),
        ("slurm:-V,a", "'-V'"),
    ] {
        let message = refused(&sandbox, &["fleet", "up", source]);
        assert!(message.contains(place) && message.contains("begins with '-'"), "{message}");
    }
    assert!(!sandbox.path("planted").exists());
}

#[test]
fn short_texts_do_not_name_more_hosts_than_there_is_memory_for() {
    let sandbox = Sandbox::new();
    let zeros = "0".repeat(70_000);
    let ranges = format!("\"{}[0-65535]\", ", "n".repeat(240)).repeat(200);
    fs::write(sandbox.path("groups.toml"), format!("[[host]]\nname = \"a\"\n[groups]\ng = [{ranges}]\n")).unwrap();
    let chain = |at: usize| format!("[g{at}]\nh{at}\n[g{at}:children]\ng{}\n", at + 1);
    fs::write(sandbox.path("chain.ini"), (0..1_500).map(chain).collect::<String>()).unwrap();
    for (source, said) in [
        (format!("slurm:n[{zeros}-1]"), "at most 253 characters"),
        (format!("slurm:n[{}1-65535]", &zeros[..60_000]), "at most 253 characters"),
        (format!("slurm:n{}", "[1]".repeat(30_000)), "more than 8 brackets"),
        ("groups.toml".into(), "groups.toml:4:"),
        ("ansible:chain.ini".into(), "line "),
    ] {
        let message = refused(&sandbox, &["fleet", "show", &source]);
        assert!(message.contains(said) && message.len() < 400, "{message}");
    }
    // Twelve ways from each group to the next one: what is named once is passed once.
    let fan = |at: usize| format!("[g{at}:children]\n{}", format!("g{}\n", at + 1).repeat(12));
    let text: String = (0..31).map(fan).chain(["[g31]\nh\n".to_owned()]).collect();
    fs::write(sandbox.path("fan.ini"), text).unwrap();
    assert!(sandbox.run(&["fleet", "show", "ansible:fan.ini"]).ok().stdout.contains('h'));
}

#[test]
fn a_name_in_a_file_makes_no_line_of_its_own() {
    let sandbox = Sandbox::new();
    let name = "n1\\\"}\\nthru: all is well\\r] ";
    let topology = format!("[[host]]\nname = \"{name}\"\n[[host]]\nname = \"{name}\"\n");
    fs::write(sandbox.path("twice.toml"), &topology).unwrap();
    fs::write(sandbox.path("bracket.toml"), format!("[[host]]\nname = \"{name}[\"\n")).unwrap();
    fs::write(sandbox.path("plan.toml"), format!("to = [\"a\"]\n[base]\n\"{name}\" = 1\n")).unwrap();
    for args in [
        &["fleet", "show", "twice.toml"][..],
        &["fleet", "show", "bracket.toml"],
        &["lab", "run", "twice.toml", "--", "true"],
        &["run", "plan.toml", "--dry-run"],
    ] {
        let message = refused(&sandbox, args);
        assert!(message.contains("thru: all is well"), "it is quoted: {message}");
    }
}

#[test]
fn a_report_is_written_through_no_link_of_others() {
    let sandbox = Sandbox::new();
    sandbox.run(&["transfer", "--transport", "memcpy", "--count", "1"]).ok();
    fs::write(sandbox.path("victim"), "secret").unwrap();
    for link in ["r.html.part", "r.html", "r.json"] {
        symlink(sandbox.path("victim"), sandbox.path(link)).unwrap();
    }
    sandbox.run(&["report", "last", "-o", "r.html"]).ok();
    sandbox.run(&["export", "last", "--format", "json", "-o", "r.json"]).ok();
    assert_eq!(fs::read_to_string(sandbox.path("victim")).unwrap(), "secret");
    let is_link = |name: &str| fs::symlink_metadata(sandbox.path(name)).unwrap().is_symlink();
    assert!(!is_link("r.html") && !is_link("r.json") && is_link("r.html.part"));
}
