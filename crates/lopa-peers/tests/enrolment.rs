//! Keys and rosters: their files, refusals and hints.

use std::path::Path;

use lopa::config::Source;
use lopa::error::{Error, Kind};
use lopa::network::Graph;
use lopa_peers::{Key, Member, Roster};

#[cfg(unix)]
#[test]
fn a_key_is_written_once_and_only_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alice.key");
    let key = Key::create(&path).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(Key::read(&path).unwrap().public(), key.public());
    let text = std::fs::read_to_string(&path).unwrap();
    let again = Key::create(&path).unwrap_err();
    assert_eq!((again.id, again.kind), ("key/exists", Kind::Storage));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    // No temporary file is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    for loose in [0o644, 0o640, 0o604, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(loose)).unwrap();
        let error = Key::read(&path).unwrap_err();
        assert_eq!(error.id, "key/permissions");
        assert!(error.message.contains(&format!("{loose:04o}")), "{error}");
        assert!(error.hint.unwrap().contains("chmod 600"));
    }
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
    assert_eq!(Key::create(&folder.path().join("link")).unwrap_err().id, "key/exists");
    assert!(!format!("{key:?}").contains(text.lines().last().unwrap()), "secrets are not printed");
}

#[test]
fn malformed_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    assert_eq!(Key::read(&path).unwrap_err().id, "key/unreadable");
    let none = Key::create(&folder.path().join("no/such/folder")).unwrap_err();
    assert_eq!(none.kind, Kind::Storage);
    let digits = "0".repeat(63);
    for text in ["", "lopa secret key 1\n", &format!("lopa secret key 1\n{digits}\n"), "1234"] {
        std::fs::write(&path, text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        assert_eq!(Key::read(&path).unwrap_err().id, "key/malformed", "{text:?}");
    }
}

/// Public keys of four nodes.
fn keys() -> [String; 4] {
    let folder = tempfile::tempdir().unwrap();
    [0, 1, 2, 3].map(|i| {
        let key = Key::create(&folder.path().join(i.to_string())).unwrap();
        key.public().to_string()
    })
}

fn parse(text: &str) -> Result<Roster, Error> {
    Roster::parse(&Source::new("roster.toml", text))
}

fn entry(name: &str, key: &str, more: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\nkey = \"{key}\"\n{more}\n")
}

#[test]
fn a_roster_is_written_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("roster.toml");
    let [a, b, c, _] = keys();
    let mut roster = Roster::default();
    let list = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    roster
        .join(Member::new("alice", &a, list(&["192.0.2.1:4800"]), list(&["bob"])).unwrap())
        .unwrap();
    roster
        .join(Member::new("bob", &b, list(&["[2001:db8::1]:4800"]), list(&["carol"])).unwrap())
        .unwrap();
    roster.join(Member::new("carol", &c, Vec::new(), Vec::new()).unwrap()).unwrap();
    roster.write(&path).unwrap();
    let mut read = Roster::read(&path).unwrap();
    assert_eq!(read, roster);
    read.check().unwrap();
    assert_eq!(read.graph().unwrap().unwrap().edges().collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    // A graph may omit links that the roster names, but not add any.
    let graph = |edges: &[(usize, usize)]| Graph::from_edges(3, edges.iter().copied()).unwrap();
    read.allows(&graph(&[(0, 1), (1, 2)])).unwrap();
    assert_eq!(read.allows(&graph(&[(0, 2), (1, 2)])).unwrap_err().id, "roster/other-graph");
    read.leave("bob").unwrap();
    assert_eq!(read.members.len(), 2);
    assert!(read.members.iter().all(|member| member.neighbours.is_empty()));
    assert_eq!(read.allows(&graph(&[(0, 1), (1, 2)])).unwrap_err().id, "roster/other-nodes");
}

#[test]
fn mistakes_in_a_roster_are_named() {
    let [a, b, c, d] = keys();
    let two =
        entry("alice", &a, "addresses = [\"h:1\"]") + &entry("bob", &b, "addresses = [\"h:2\"]");
    let bad: [(String, &str, &str); 13] = [
        (two.clone() + &entry("bob", &c, ""), "roster/duplicate", "name"),
        (two.clone() + &entry("carol", &a, ""), "roster/duplicate", "key"),
        (two.clone() + &entry("carol", &c, "addresses = [\"h:2\"]"), "roster/duplicate", "address"),
        (entry("a b", &a, ""), "roster/bad-name", "a b"),
        (entry("", &a, ""), "roster/bad-name", ""),
        (entry("alice", "12", ""), "roster/bad-key", "12"),
        (entry("alice", &"z".repeat(64), ""), "roster/bad-key", "zzz"),
        (entry("alice", &a, "addresses = [\"nowhere\"]"), "roster/bad-address", "nowhere"),
        (entry("alice", &a, "addresses = [\"h:0\"]"), "roster/bad-address", "h:0"),
        (entry("alice", &a, "neighbours = [\"alice\"]"), "roster/bad-neighbour", "alice"),
        (entry("alice", &a, "adresses = []"), "config/unknown-key", "adresses"),
        ("[[node]]\nname = \"alice\"\n".into(), "config/missing-key", "key"),
        ("nodes = 3\n".into(), "config/unknown-key", "nodes"),
    ];
    for (text, id, names) in bad {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.id, id, "{text}");
        assert!(error.message.contains(names), "{error}");
        assert!(error.place.unwrap().starts_with("roster.toml:"));
    }
    let check = |text: &str| parse(text).unwrap().check().unwrap_err();
    assert_eq!(check(&entry("alice", &a, "")).id, "roster/alone");
    let disconnected = two.clone()
        + &entry("carol", &c, "addresses = [\"h:3\"]\nneighbours = [\"dave\"]")
        + &entry("dave", &d, "neighbours = [\"carol\"]");
    let error = check(&disconnected);
    assert_eq!((error.id, error.kind), ("network/disconnected", Kind::Network));
    assert!(error.message.contains("carol, dave"), "{error}");
    let typo = two.clone() + &entry("carol", &c, "neighbours = [\"alcie\"]");
    let error = check(&typo);
    assert_eq!(error.id, "roster/unknown-node");
    assert!(error.hint.unwrap().contains("did you mean `alice`?"));
    let unreachable = entry("alice", &a, "neighbours = [\"bob\"]") + &entry("bob", &b, "");
    assert_eq!(check(&unreachable).id, "roster/no-address");
    let mut roster = parse(&two).unwrap();
    assert!(roster.leave("bbo").unwrap_err().hint.unwrap().contains("`bob`"));
}
