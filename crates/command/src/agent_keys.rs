//! The keys by which agents are recognized: this user's own, in a file that its agents share, and those of agents that were
//! reached before (`known_agents`), as with ssh.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use control::proof::fingerprint::Fingerprint;
use control::{AgentKey, KeyError, KnownKeys, Recognized};
use store::Store;
use text::{Text, say};

use crate::failure::Failure;
use crate::files::{private_folder, read_secret};

/// The variable with the file of the agent's key.
const KEY_VARIABLE: &str = "THRU_AGENT_KEY";
/// The variable with the file of known agents.
const KNOWN_VARIABLE: &str = "THRU_KNOWN_AGENTS";

/// The file of the key of this user's agents: `path`, or the default one. `None` for a user without a home.
#[must_use]
pub fn key_file(path: Option<&Path>) -> Option<PathBuf> {
    path.map(Path::to_owned).or_else(|| place(KEY_VARIABLE, "agent.key"))
}

/// The file of the agents that this user has reached. `None` for a user without a home.
#[must_use]
pub fn known_file() -> Option<PathBuf> {
    place(KNOWN_VARIABLE, "known_agents")
}

/// The file that `variable` names, or `name` next to the default store.
pub(crate) fn place(variable: &str, name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(Store::default_path().ok()?.parent()?.join(name)))
}

/// The key of this user, if there is one that can be read.
#[must_use]
pub fn own() -> Option<AgentKey> {
    read(&key_file(None)?).ok()
}

/// The key in a file, which is made if there is none.
///
/// # Errors
/// It cannot be read or made, holds no key, or others may read it.
pub fn load_or_make(file: &Path) -> Result<AgentKey, Failure> {
    let failed = |what: &str, error: io::Error| {
        Failure::host(say!("cannot {what} the agent's key {file}: {error}; name another file with `--key-file`"))
    };
    match read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(file).map_err(|error| failed("make", error))?;
            read(file)
        }
        result => result,
    }
    .map_err(|error| failed("read", error))
}

fn read(file: &Path) -> io::Result<AgentKey> {
    AgentKey::from_pem(&read_secret(file)?)
}

/// Writes a new key, unless another process was faster.
fn make(file: &Path) -> io::Result<()> {
    let mut new = tempfile::NamedTempFile::new_in(folder_of(file)?)?;
    new.write_all(AgentKey::fresh_pem()?.as_bytes())?;
    match new.persist_noclobber(file) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// The key of an agent that starts. If the user's home has no place for a key, the agent gets one that is not saved, and `log` says so.
///
/// # Errors
/// `path` names a file that cannot be used.
pub fn of_agent(path: Option<&Path>, log: impl Fn(&Text)) -> Result<AgentKey, Failure> {
    let fresh = |why: &Text| {
        let told =
            say!("{why}: this agent's new key is not saved, so clients will refuse its next one; use `--key-file`");
        log(&told);
        AgentKey::fresh().map_err(|error| Failure::host(format!("cannot make a key: {error}")))
    };
    match key_file(path) {
        Some(file) => match load_or_make(&file) {
            Err(failure) if path.is_none() => fresh(failure.text()),
            result => result,
        },
        None => fresh(&"neither XDG_DATA_HOME nor HOME is an absolute path, so its key has no folder".into()),
    }
}

/// The agents that this user has reached, and the key of its own agents.
#[derive(Debug)]
pub struct KnownAgents {
    file: Option<PathBuf>,
    own: Option<Fingerprint>,
}

/// An agent and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAgent {
    /// Name and port.
    pub name: String,
    /// Its key.
    pub key: Fingerprint,
}

impl KnownAgents {
    /// Those of this user.
    #[must_use]
    pub fn of_user() -> Self {
        Self { file: known_file(), own: own().map(|key| key.fingerprint()) }
    }

    /// All of them, in the order in which they were reached. No file is an empty list.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Vec<KnownAgent>, Failure> {
        let text = self.text()?;
        let agent = |(name, key): (&str, Option<Fingerprint>)| Some(KnownAgent { name: name.to_owned(), key: key? });
        Ok(text.lines().filter_map(entry).filter_map(agent).collect())
    }

    /// Adds an agent, in place of what was known of it. Comments stay.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn trust(&self, agent: &KnownAgent) -> Result<(), Failure> {
        let mut text = without(&self.text()?, &agent.name);
        text += &line(&agent.name, &agent.key);
        self.write(&text)
    }

    /// Forgets the keys of an agent, so that the next one that it shows is accepted. Comments stay.
    ///
    /// # Errors
    /// There are none, or the file cannot be written.
    pub fn forget(&self, name: &str) -> Result<(), Failure> {
        let text = self.text()?;
        if !text.lines().filter_map(entry).any(|(known, _)| known == name) {
            return Err(Failure::usage(format!("no key of {name} is stored here: see `thru agent known`")));
        }
        self.write(&without(&text, name))
    }

    /// The text of the file, empty without one.
    fn text(&self) -> Result<String, Failure> {
        let Some(file) = &self.file else { return Ok(String::new()) };
        text_of(file).map_err(|error| Failure::host(format!("cannot read {}: {error}", file.display())))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let file = self.file.as_deref().ok_or_else(no_home)?;
        let replace = || -> io::Result<()> {
            let folder = folder_of(file)?;
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all(text.as_bytes())?;
            new.persist(file).map(drop).map_err(|error| error.error)
        };
        replace().map_err(|error| Failure::output(format!("cannot write {}: {error}", file.display())))
    }
}

/// The failure of a user without a home.
#[must_use]
pub fn no_home() -> Failure {
    Failure::output(format!(
        "neither XDG_DATA_HOME nor HOME is an absolute path, so keys have no folder: set {KEY_VARIABLE} and {KNOWN_VARIABLE} to files"
    ))
}

/// The name under which the key of the agent at `host` is known: `name:port`.
///
/// # Errors
/// It is no host.
pub fn name(host: &str) -> Result<String, Failure> {
    Ok(control::coordinator::identity(host)?)
}

/// The folder of a file, which is made if there is none.
pub(crate) fn folder_of(file: &Path) -> io::Result<&Path> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_folder(folder)?;
    Ok(folder)
}

/// The text of a file of known agents, empty if there is none. Bytes that are not UTF-8 are replaced: no name or key has any.
fn text_of(file: &Path) -> io::Result<String> {
    match fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        result => Ok(String::from_utf8_lossy(&result?).into_owned()),
    }
}

/// The agent that a line is about, `NAME:PORT FINGERPRINT`, and its key if that is one. `None` for a comment or an empty line.
fn entry(line: &str) -> Option<(&str, Option<Fingerprint>)> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|name| !name.starts_with('#'))?;
    Some((name, words.next().and_then(|key| key.parse().ok())))
}

/// The line of an agent.
fn line(agent: &str, key: &Fingerprint) -> String {
    format!("{agent} {key}\n")
}

/// A text without the lines of an agent; its last line ends.
fn without(text: &str, agent: &str) -> String {
    let others = text.lines().filter(|line| entry(line).is_none_or(|(name, _)| name != agent));
    others.flat_map(|line| [line, "\n"]).collect()
}

/// Appends a line, which is whole even when several commands meet the same agent.
fn append(file: &Path, agent: &str, key: &Fingerprint) -> io::Result<()> {
    folder_of(file)?;
    // The last line of a file that was edited may not end.
    let end = if matches!(text_of(file)?.chars().last(), None | Some('\n')) { "" } else { "\n" };
    let mut known = OpenOptions::new().create(true).append(true).mode(0o600).open(file)?;
    known.write_all(format!("{end}{}", line(agent, key)).as_bytes())
}

impl KnownKeys for KnownAgents {
    fn check(&self, agent: &str, key: &Fingerprint) -> Result<Recognized, KeyError> {
        let own = self.own == Some(*key);
        // A file that cannot be read knows nobody; `keep` then says why.
        let known = self.text().unwrap_or_default();
        let of_agent: Vec<Option<Fingerprint>> =
            known.lines().filter_map(entry).filter(|(name, _)| *name == agent).map(|(_, key)| key).collect();
        if of_agent.is_empty() {
            return Ok(if own { Recognized::Own } else { Recognized::New });
        }
        // Whoever has this user's own key may read its files.
        if own || of_agent.contains(&Some(*key)) {
            return Ok(Recognized::Known);
        }
        let agent = agent.to_owned();
        Err(match of_agent.into_iter().flatten().next() {
            Some(before) => KeyError::Changed { key: *key, before, agent },
            None => KeyError::Line { agent, file: self.file.clone().unwrap_or_default() },
        })
    }

    fn keep(&self, agent: &str, key: &Fingerprint) -> String {
        let new = format!("{agent} has the key {key}, seen here for the first time");
        let Some(file) = &self.file else {
            return format!("{new}; it cannot be saved: set {KNOWN_VARIABLE} to a file");
        };
        match append(file, agent, key) {
            Ok(()) => format!("{new}; saved in {}", file.display()),
            Err(error) => format!("{new}; it cannot be saved in {}: {error}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn known(folder: &Path) -> KnownAgents {
        KnownAgents { file: Some(folder.join("data/known_agents")), own: Some(Fingerprint::of(b"own")) }
    }

    #[test]
    fn the_first_key_of_an_agent_is_kept_and_another_is_refused_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let known = known(folder.path());
        let [one, other] = [b"one", b"two"].map(|key| Fingerprint::of(key));
        assert_eq!(known.check("b:6280", &one), Ok(Recognized::New));
        assert_eq!(known.check("b:6280", &other), Ok(Recognized::New), "a check keeps nothing");
        let first = known.keep("b:6280", &one);
        assert!(first.starts_with("b:6280 has the key SHA256:") && first.contains("known_agents"), "{first}");
        assert_eq!(known.check("b:6280", &one), Ok(Recognized::Known));
        let own = Fingerprint::of(b"own");
        assert_eq!(
            known.check("b:6280", &own),
            Ok(Recognized::Known),
            "this user's own agent, in place of another one"
        );
        let refused = known.check("b:6280", &other).unwrap_err().to_string();
        assert!(refused.contains(&other.to_string()) && refused.contains("thru agent forget b:6280"), "{refused}");
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.path().join("data")), mode(folder.path().join("data/known_agents"))), (0o700, 0o600));
        known.forget("b:6280").unwrap();
        assert!(known.forget("b:6280").unwrap_err().to_string().contains("no key of b:6280 is stored here"));
        assert_eq!(known.check("b:6280", &other), Ok(Recognized::New));
        known.trust(&KnownAgent { name: "b:6280".into(), key: one }).unwrap();
        assert_eq!(known.check("b:6280", &one), Ok(Recognized::Known));
        assert_eq!(known.list().unwrap(), [KnownAgent { name: "b:6280".into(), key: one }]);
    }

    #[test]
    fn a_host_that_has_shown_the_users_own_key_may_show_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let known = known(folder.path());
        let [own, other] = [b"own".as_slice(), b"other"].map(Fingerprint::of);
        assert_eq!(known.check("node7:6280", &own), Ok(Recognized::Own));
        known.keep("node7:6280", &own);
        assert_eq!(known.check("node7:6280", &own), Ok(Recognized::Known));
        let refused = known.check("node7:6280", &other).unwrap_err().to_string();
        assert!(refused.contains("has changed") && refused.contains("thru agent forget node7:6280"), "{refused}");
        assert_eq!(known.check("node8:6280", &other), Ok(Recognized::New));
    }

    #[test]
    fn a_file_that_was_edited_keeps_its_comments_and_loses_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let known = known(folder.path());
        let file = folder.path().join("data/known_agents");
        let [one, other] = [b"one", b"two"].map(|key| Fingerprint::of(key));
        private_folder(file.parent().unwrap()).unwrap();
        // A byte that is no text, a tab, a word after the key, a key cut off, and a last line that does not end.
        let lines = format!("b:6280\t{one} old\ne:6280 SHA256:ab\nc:6280 {one}");
        fs::write(&file, [b"# rack \xe9\n", lines.as_bytes()].concat()).unwrap();
        known.keep("d:6280", &other);
        for agent in ["b:6280", "c:6280"] {
            assert_eq!(known.check(agent, &one), Ok(Recognized::Known), "{agent}");
            known.check(agent, &other).unwrap_err();
        }
        assert_eq!(known.check("d:6280", &other), Ok(Recognized::Known));
        let refused = known.check("e:6280", &one).unwrap_err().to_string();
        assert!(
            refused.contains("known_agents has no key") && refused.contains("thru agent forget e:6280"),
            "{refused}"
        );
        known.forget("e:6280").unwrap();
        known.forget("b:6280").unwrap();
        known.trust(&KnownAgent { name: "c:6280".into(), key: other }).unwrap();
        let left = fs::read_to_string(&file).unwrap();
        assert_eq!(left, format!("# rack \u{fffd}\nd:6280 {other}\nc:6280 {other}\n"));
    }

    #[test]
    fn a_key_is_made_once_and_refused_where_others_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data/agent.key");
        let made: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..4).map(|_| scope.spawn(|| load_or_make(&file).unwrap().fingerprint())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(made.iter().all(|key| *key == made[0]), "{made:?}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = load_or_make(&file).unwrap_err().to_string();
        assert!(refused.contains("mode 644") && refused.contains("chmod 600"), "{refused}");
    }
}
