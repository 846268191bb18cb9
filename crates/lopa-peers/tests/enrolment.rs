//! Keys and rosters: their files, refusals and hints.

mod joining;

use std::path::Path;

use lopa::config::Source;
use lopa::error::{Error, Kind};
use lopa::network::Graph;
use lopa_peers::{Invite, Key, Member, Reply, Roster};

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

/// A founder with keys for three more nodes, and the roster it signs.
struct Founded {
    _folder: tempfile::TempDir,
    keys: Vec<Key>,
    roster: Roster,
}

const NODES: [&str; 4] = ["north", "south", "west", "east"];

fn founded() -> Founded {
    let folder = tempfile::tempdir().unwrap();
    let keys: Vec<Key> =
        NODES.iter().map(|name| Key::create(&folder.path().join(name)).unwrap()).collect();
    let address = vec!["192.0.2.1:4800".to_string()];
    let north = Member::new("north", &keys[0].public().to_string(), address, Vec::new()).unwrap();
    let names = NODES.map(String::from).to_vec();
    let roster = Roster::found(north, &keys[0], [7; 32], names, vec!["https://r.org".into()]);
    Founded { _folder: folder, keys, roster: roster.unwrap() }
}

fn invite(roster: &Roster, name: &str) -> Invite {
    let (name, experiment, roster) = (name.into(), "schema = 1\n".into(), roster.clone());
    Invite {
        name,
        experiment,
        roster,
        features: Some(2),
        columns: vec!["a b".into(), "c\"".into()],
    }
}

#[test]
fn three_nodes_join_a_roster_in_any_order_and_all_read_the_same_one() {
    let Founded { _folder: folder, keys, mut roster } = founded();
    let path = folder.path().join("roster.toml");
    for (count, at) in [3, 1, 2].into_iter().enumerate() {
        let file = folder.path().join("an.invite");
        let sent = invite(&roster, NODES[at]);
        sent.write(&file).unwrap();
        assert_eq!(Invite::read(&file).unwrap(), sent);
        let reply = sent.accept(&keys[at], Vec::new()).unwrap();
        let file = folder.path().join("a.reply");
        assert!(!Reply::is_one(&folder.path().join("an.invite")).unwrap());
        reply.write(&file).unwrap();
        assert!(Reply::is_one(&file).unwrap());
        let read = Reply::read(&file).unwrap();
        assert_eq!((read.fingerprint(), &read), (reply.fingerprint(), &reply));
        assert!(roster.check().is_err(), "not all have joined");
        let before = roster.clone();
        assert!(roster.admit(read.clone().to(&roster).unwrap()).unwrap());
        // The organiser must sign the change.
        assert_eq!(roster.verify().unwrap_err().id, "roster/bad-signature");
        assert_eq!(roster.sign(&keys[at]).unwrap_err().id, "roster/not-organiser");
        roster.sign(&keys[0]).unwrap();
        roster.verify().unwrap();
        assert!(!roster.admit(read.to(&roster).unwrap()).unwrap(), "twice");
        assert_eq!(roster.seal.as_ref().unwrap().version, count as u64 + 2);
        before.accepts(&roster).unwrap();
        assert_eq!(roster.accepts(&before).unwrap_err().id, "roster/outdated");
        roster.write(&path).unwrap();
        let shown = Roster::read(&path).unwrap();
        assert_eq!((&shown, shown.fingerprint()), (&roster, roster.fingerprint()));
        assert_ne!(before.fingerprint(), roster.fingerprint());
    }
    let names: Vec<&str> = roster.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, NODES);
    roster.check().unwrap();
    roster.leave("west").unwrap();
    roster.sign(&keys[0]).unwrap();
    roster.verify().unwrap();
    assert_eq!(roster.absent(), ["west"]);
    assert_eq!(roster.leave("north").unwrap_err().id, "roster/organiser");
}

/// Every change of one character in a signed roster is refused, unless it does not change its content.
#[test]
fn a_signed_roster_that_someone_changed_is_refused() {
    let Founded { _folder: folder, keys, mut roster } = founded();
    let south = invite(&roster, "south").accept(&keys[1], vec!["h:1".into()]).unwrap();
    roster.admit(south.to(&roster).unwrap()).unwrap();
    roster.sign(&keys[0]).unwrap();
    let path = folder.path().join("roster.toml");
    roster.write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut refused = 0;
    for at in (0..text.len()).step_by(3) {
        let old = text.as_bytes()[at];
        let new = if old.is_ascii_digit() { (old - b'0' + 1) % 10 + b'0' } else { b'a' };
        let mut bytes = text.clone().into_bytes();
        bytes[at] = new;
        if let Ok(read) = parse(std::str::from_utf8(&bytes).unwrap()) {
            assert_eq!(read, roster, "byte {at} of {text}");
        } else {
            refused += 1;
        }
    }
    assert!(refused > text.len() / 4, "{refused} of {}", text.len());
    // Entries that are left out or doubled are also refused.
    let cut = text.rfind("[[node]]").unwrap();
    assert_eq!(parse(&text[..cut]).unwrap_err().id, "roster/bad-signature");
    for key in ["version", "experiment", "organiser", "names", "signature"] {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        let error = parse(&text.replacen(line, "", 1)).unwrap_err();
        assert_eq!(error.id, "config/missing-key", "{key}");
    }
}

#[test]
fn replies_and_rosters_of_others_are_refused() {
    let Founded { _folder: folder, keys, mut roster } = founded();
    let other = founded();
    let sent = invite(&roster, "south");
    let reply = sent.accept(&keys[1], Vec::new()).unwrap();
    // To another organiser, or to another experiment.
    let stranger = invite(&other.roster, "south").accept(&keys[1], Vec::new()).unwrap();
    assert_ne!(stranger.fingerprint(), reply.fingerprint());
    assert_eq!(stranger.to(&roster).unwrap_err().id, "roster/other-invitation");
    let mut elsewhere = reply.clone();
    elsewhere.experiment = [8; 32];
    assert_eq!(elsewhere.to(&roster).unwrap_err().id, "roster/other-invitation");
    // A reply whose key, name or address was changed on its way.
    let file = folder.path().join("r");
    for change in [0, 1, 2] {
        let mut forged = reply.clone();
        match change {
            0 => forged.member.key = keys[2].public(),
            1 => forged.member.name = "west".into(),
            _ => forged.member.addresses.push("h:9".into()),
        }
        forged.write(&file).unwrap();
        assert_eq!(Reply::read(&file).unwrap_err().id, "roster/bad-signature", "{change}");
    }
    // A second reply under a name that has joined; a name that is not invited.
    roster.admit(reply.to(&roster).unwrap()).unwrap();
    roster.sign(&keys[0]).unwrap();
    let second = sent.accept(&keys[2], Vec::new()).unwrap();
    let member = second.to(&roster).unwrap();
    assert_eq!(roster.clone().admit(member).unwrap_err().id, "roster/joined");
    let odd = invite(&roster, "centre").accept(&keys[2], Vec::new()).unwrap();
    let member = odd.to(&roster).unwrap();
    assert_eq!(roster.clone().admit(member).unwrap_err().id, "roster/unknown-node");
    // A roster of another organiser, or for another experiment.
    assert_eq!(roster.accepts(&other.roster).unwrap_err().id, "roster/not-organiser");
    let north = roster.members[0].clone();
    let names = NODES.map(String::from).to_vec();
    let moved = Roster::found(north, &keys[0], [9; 32], names, Vec::new()).unwrap();
    assert_eq!(roster.accepts(&moved).unwrap_err().id, "roster/other-experiment");
}

/// `LOPA_JOINS=from..to` sets the seeds.
#[test]
fn joining_ends_with_one_roster_whatever_the_mail_does() {
    let folder = tempfile::tempdir().unwrap();
    let key = |at: usize| Key::create(&folder.path().join(at.to_string())).unwrap();
    let keys: Vec<Key> = (0..5).map(key).collect();
    let asked = std::env::var("LOPA_JOINS").ok();
    let asked = asked.as_deref().map(|asked| asked.split_once("..").expect("from..to"));
    let seeds = asked.map_or(0..300, |(from, to)| from.parse().unwrap()..to.parse().unwrap());
    let runs = seeds.clone().count();
    joining::simulate(seeds, &keys, &key(5)).check(runs);
}

#[test]
fn names_that_cannot_be_those_of_files_are_refused_everywhere() {
    let Founded { _folder: folder, keys, roster } = founded();
    let north = || roster.members[0].clone();
    let long = "n".repeat(65);
    for wrong in ["", "../x", "a/b", "/etc/x", "a b", "x\n", ".", "é", &long] {
        let names = vec!["north".to_string(), wrong.to_string()];
        let founded = Roster::found(north(), &keys[0], [7; 32], names.clone(), Vec::new());
        assert_eq!(founded.unwrap_err().id, "roster/bad-name", "{wrong:?}");
        // A roster of a stranger, signed as it should be.
        let mut forged = roster.clone();
        forged.seal.as_mut().unwrap().names = names;
        forged.sign(&keys[0]).unwrap();
        assert_eq!(forged.verify().unwrap_err().id, "roster/bad-name", "{wrong:?}");
        let file = folder.path().join("an.invite");
        invite(&roster, wrong).write(&file).unwrap();
        assert_eq!(Invite::read(&file).unwrap_err().id, "roster/bad-name", "{wrong:?}");
    }
    let twice = ["north", "south", "south"].map(String::from).to_vec();
    let founded = Roster::found(north(), &keys[0], [7; 32], twice, Vec::new());
    assert_eq!(founded.unwrap_err().id, "roster/duplicate");
}

#[test]
fn a_relay_serves_the_members_only() {
    let Founded { roster, keys, .. } = founded();
    let read = |url: &str, contact| -> toml::Table {
        roster.relay(url, contact).unwrap().parse().unwrap()
    };
    let secure = read("https://relay.example.org", Some("ops@example.org"));
    let allowed = secure["access"]["allowlist"].as_array().unwrap();
    assert_eq!(allowed, &[toml::Value::String(keys[0].public().to_string())]);
    assert_eq!(secure["tls"]["hostname"].as_str(), Some("relay.example.org"));
    assert_eq!(secure["tls"]["https_bind_addr"].as_str(), Some("[::]:443"));
    assert_eq!(secure["tls"]["cert_mode"].as_str(), Some("LetsEncrypt"));
    assert_eq!(read("https://r.org:8443/", None)["tls"]["cert_mode"].as_str(), Some("Manual"));
    let plain = read("http://[2001:db8::1]:3340", None);
    assert_eq!(plain["http_bind_addr"].as_str(), Some("[::]:3340"));
    assert!(!plain.contains_key("tls"));
    assert_eq!(read("http://[2001:db8::1]", None)["http_bind_addr"].as_str(), Some("[::]:80"));
    for wrong in ["relay.example.org", "ftp://r.org", "https://", "http://r.org:x", "http://a b"] {
        assert_eq!(roster.relay(wrong, None).unwrap_err().id, "roster/bad-relay", "{wrong}");
    }
    // The program of the version that is linked.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock: toml::Table = std::fs::read_to_string(lock).unwrap().parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let linked = packages.iter().find(|package| package["name"].as_str() == Some("iroh-relay"));
    assert_eq!(linked.unwrap()["version"].as_str(), Some(lopa_peers::RELAY_VERSION));
}
