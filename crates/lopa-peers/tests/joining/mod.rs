//! Joining, simulated: an organiser and sites that send each other invitations, replies and rosters by a mail that loses,
//! repeats, delays, swaps and changes them, and that a stranger reads and writes. The files are made, read and judged by
//! the code that `lopa invite`, `lopa join` and `lopa roster accept` run.
//!
//! People do what the page says: the organiser calls each site whose reply it accepts, before it does anything else, and
//! removes a member whose fingerprint the site does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lopa::config::Source;
use lopa::error::Error;
use lopa::math::random::{Purpose, Stream};
use lopa_peers::{Invite, Key, Member, Reply, Roster};

/// The organiser is the first.
const NAMES: [&str; 5] = ["north", "south", "west", "east", "centre"];

const EXPERIMENT: [u8; 32] = [7; 32];

/// A file on its way.
#[derive(Debug, Clone)]
enum Mail {
    Invite(String),
    Reply(String),
    Roster(String),
}

impl Mail {
    fn text(&mut self) -> &mut String {
        match self {
            Mail::Invite(text) | Mail::Reply(text) | Mail::Roster(text) => text,
        }
    }
}

/// A site: its key, its roster if it has one, and the fingerprints of the replies that it wrote.
struct Site {
    key: Key,
    roster: Option<Roster>,
    prints: BTreeSet<String>,
}

/// Everybody, and the mail.
struct World<'k> {
    nodes: usize,
    /// The organiser's roster.
    roster: Roster,
    sites: Vec<Site>,
    stranger: &'k Key,
    /// The stranger's own roster, of the same names.
    false_roster: Roster,
    mail: Vec<(usize, Mail)>,
    /// Everything that was ever sent, which the stranger has.
    seen: Vec<Mail>,
    stream: Stream,
    counts: Counts,
}

#[derive(Debug, Default)]
pub struct Counts {
    /// Messages that were accepted, and those that were refused, by reason.
    accepted: usize,
    refused: BTreeMap<&'static str, usize>,
    /// Members that the telephone call removed.
    removed: usize,
    /// Sites that began again in another folder.
    again: usize,
    versions: u64,
}

fn member(at: usize, key: &Key) -> Member {
    Member::new(NAMES[at], &key.public().to_string(), Vec::new(), Vec::new()).unwrap()
}

impl<'k> World<'k> {
    fn new(seed: u64, keys: &[Key], stranger: &'k Key) -> World<'k> {
        let mut stream = Stream::new(seed, Purpose::Tuning, 12);
        let nodes = 2 + stream.below(NAMES.len() - 1);
        let names: Vec<String> = NAMES[..nodes].iter().map(|name| name.to_string()).collect();
        let relays = vec!["https://relay.example.org".to_string()];
        let found = |key: &Key| {
            Roster::found(member(0, key), key, EXPERIMENT, names.clone(), relays.clone()).unwrap()
        };
        let roster = found(&keys[0]);
        let site = |key: &Key| Site { key: key.clone(), roster: None, prints: BTreeSet::new() };
        let mut sites: Vec<Site> = keys[..nodes].iter().map(site).collect();
        sites[0].roster = Some(roster.clone());
        let counts = Counts::default();
        let (mail, seen, false_roster) = (Vec::new(), Vec::new(), found(stranger));
        World { nodes, roster, sites, stranger, false_roster, mail, seen, stream, counts }
    }

    fn send(&mut self, to: usize, mail: Mail) {
        self.seen.push(mail.clone());
        self.mail.push((to, mail));
    }

    /// Notes a refusal: it names its reason and a remedy.
    fn refuse(&mut self, error: &Error) {
        assert!(!error.message.is_empty(), "{error:?}");
        let known = ["roster/", "config/"].iter().any(|kind| error.id.starts_with(kind));
        assert!(known && error.kind.exit_code() != 101, "{error:?}");
        *self.counts.refused.entry(error.id).or_default() += 1;
    }

    /// `lopa invite` for those that have not joined.
    fn invite(&mut self) {
        for at in 1..self.nodes {
            if self.roster.absent().contains(&NAMES[at]) {
                let invite = invitation(&self.roster, NAMES[at]);
                self.send(at, Mail::Invite(invite.to_text()));
            }
        }
    }

    /// The organiser sends its roster to all.
    fn publish(&mut self) {
        let text = self.roster.to_text();
        (1..self.nodes).for_each(|at| self.send(at, Mail::Roster(text.clone())));
    }

    /// The organiser signs a change, and keeps it.
    fn sign(&mut self) {
        let before = self.roster.clone();
        self.roster.sign(&self.sites[0].key).unwrap();
        self.roster.verify().unwrap();
        self.sites[0].roster = Some(self.roster.clone());
        self.counts.versions += 1;
        assert!(version(&self.roster) == version(&before) + 1);
    }

    fn remove(&mut self, name: &str) {
        self.roster.leave(name).unwrap();
        self.sign();
    }

    /// `lopa roster accept` of a reply, and the call.
    fn on_reply(&mut self, text: &str) -> Result<(), Error> {
        let reply = Reply::parse(&Source::new("a.reply", text))?;
        let (name, print) = (reply.member.name.clone(), reply.fingerprint());
        let member = reply.to(&self.roster)?;
        let mut roster = self.roster.clone();
        if roster.admit(member)? {
            self.roster = roster;
            self.sign();
            let called = NAMES[..self.nodes].iter().position(|known| **known == *name);
            let called = called.expect("only nodes of the roster are admitted");
            if !self.sites[called].prints.contains(&print) {
                self.counts.removed += 1;
                self.remove(&name);
            }
        }
        Ok(())
    }

    /// `lopa join` at a site.
    fn on_invite(&mut self, at: usize, text: &str) -> Result<(), Error> {
        let invite = Invite::parse(&Source::new("an.invite", text))?;
        invite.node()?;
        if invite.name != NAMES[at] && self.stream.unit() < 0.5 {
            return Ok(()); // somebody sees that it is for another
        }
        let site = &mut self.sites[at];
        let latest = match &site.roster {
            Some(there) => invite.roster.latest(there)?.clone(),
            None => invite.roster.clone(),
        };
        let reply = invite.accept(&site.key, Vec::new())?;
        site.roster = Some(latest);
        if invite.name == NAMES[at] {
            site.prints.insert(reply.fingerprint());
        }
        self.send(0, Mail::Reply(reply.to_text()));
        Ok(())
    }

    /// `lopa roster accept` of a roster, at a site that has joined.
    fn on_roster(&mut self, at: usize, text: &str) -> Result<(), Error> {
        let newer = Roster::parse(&Source::new("roster.toml", text))?;
        let site = &mut self.sites[at];
        if let Some(ours) = &site.roster {
            ours.accepts(&newer)?;
            site.roster = Some(newer);
        }
        Ok(())
    }

    fn deliver(&mut self, to: usize, mail: Mail) {
        let handled = match &mail {
            // The organiser has the roster, and is not invited.
            Mail::Reply(text) if to == 0 => self.on_reply(text),
            Mail::Invite(text) if to != 0 => self.on_invite(to, text),
            Mail::Roster(text) if to != 0 => self.on_roster(to, text),
            _ => Ok(()),
        };
        match handled {
            Ok(()) => self.counts.accepted += 1,
            Err(error) => self.refuse(&error),
        }
        self.check();
    }

    /// No two have different rosters of one version under the organiser's key, and each member of such a roster is the
    /// site that was invited under that name, unless the organiser is still on the telephone.
    fn check(&self) {
        let organiser = self.sites[0].key.public();
        let own = |roster: &&Roster| roster.organiser().is_some_and(|by| by.key == organiser);
        let all = self.sites.iter().filter_map(|site| site.roster.as_ref()).filter(own);
        let mut versions: BTreeMap<u64, &Roster> = BTreeMap::new();
        for roster in all {
            let same = versions.entry(version(roster)).or_insert(roster);
            assert_eq!(*same, roster, "two rosters of version {}", version(roster));
            for member in &roster.members {
                let at = NAMES.iter().position(|name| *name == member.name).unwrap();
                let site = &self.sites[at];
                assert_eq!(
                    member.key,
                    site.key.public(),
                    "`{}` is not the one invited",
                    member.name
                );
            }
        }
        for site in &self.sites {
            let newest = site.roster.as_ref().filter(own).map(version);
            assert!(newest.is_none_or(|newest| newest <= version(&self.roster)));
        }
    }

    /// What the stranger writes.
    fn forge(&mut self) {
        let to = self.stream.below(self.nodes);
        let name = NAMES[self.stream.below(self.nodes)];
        let forged = match self.stream.below(6) {
            // It answers in another's name, or invites to its own roster, to which the site would answer.
            0 => {
                let reply = invitation(&self.roster, name).accept(self.stranger, Vec::new());
                Some(Mail::Reply(reply.unwrap().to_text()))
            }
            1 => Some(Mail::Invite(invitation(&self.false_roster, name).to_text())),
            2 => Some(Mail::Roster(self.false_roster.to_text())),
            // The organiser's roster with another member, or a higher version, signed with the stranger's key.
            3 => {
                let mut roster = self.roster.clone();
                if let Some(seal) = &mut roster.seal {
                    seal.version += 1 + self.stream.below(3) as u64;
                }
                let at = self.stream.below(roster.members.len());
                roster.members[at].key = self.stranger.public();
                let _ = roster.sign(self.stranger);
                Some(Mail::Roster(roster.to_text()))
            }
            // A name that is in no roster.
            4 => {
                let reply = invitation(&self.roster, "nobody").accept(self.stranger, Vec::new());
                Some(Mail::Reply(reply.unwrap().to_text()))
            }
            _ => {
                let at = self.stream.below(self.seen.len().max(1));
                self.seen.get(at).cloned()
            }
        };
        let Some(mail) = forged else { return };
        let to = if matches!(mail, Mail::Reply(_)) { 0 } else { to };
        self.mail.push((to, mail));
    }

    /// Something happens.
    fn step(&mut self) {
        match self.stream.below(20) {
            0..2 => self.invite(),
            2 => self.publish(),
            3 if self.roster.absent().is_empty() => self.publish(),
            4..7 => self.forge(),
            7 if self.roster.members.len() > 1 && self.stream.unit() < 0.3 => {
                let at = 1 + self.stream.below(self.roster.members.len() - 1);
                let name = self.roster.members[at].name.clone();
                self.remove(&name);
            }
            _ if self.mail.is_empty() => {}
            _ => {
                let at = self.stream.below(self.mail.len());
                let (mut to, mut mail) = self.mail.swap_remove(at);
                match self.stream.below(10) {
                    0 => return, // lost
                    1 | 2 => self.mail.push((to, mail.clone())),
                    3 => to = self.stream.below(self.nodes),
                    4 | 5 => {
                        let changed = changed(mail.text(), &mut self.stream);
                        *mail.text() = changed;
                    }
                    _ => {}
                }
                self.deliver(to, mail);
            }
        }
    }

    /// From here on everything arrives, and nobody forges: all end with one complete roster.
    fn settle(&mut self) {
        for _ in 0..4 {
            self.invite();
            self.flush();
            for at in 1..self.nodes {
                let organiser = |roster: &Roster| roster.organiser().map(|by| by.key);
                let other = |there: &Roster| organiser(there) != organiser(&self.roster);
                // It has joined the stranger's roster. The organiser calls, and it joins in another folder.
                if self.sites[at].roster.as_ref().is_some_and(other) {
                    self.sites[at].roster = None;
                    self.counts.again += 1;
                    self.send(at, Mail::Invite(invitation(&self.roster, NAMES[at]).to_text()));
                }
            }
            self.flush();
            self.publish();
            self.flush();
        }
        assert_eq!(self.roster.absent(), [""; 0]);
        self.roster.check().unwrap();
        for site in &self.sites {
            assert_eq!(site.roster.as_ref(), Some(&self.roster));
            assert_eq!(
                site.roster.as_ref().and_then(Roster::fingerprint),
                self.roster.fingerprint()
            );
        }
    }

    fn flush(&mut self) {
        while let Some((to, mail)) = self.mail.pop() {
            self.deliver(to, mail);
        }
    }
}

fn version(roster: &Roster) -> u64 {
    roster.seal.as_ref().map_or(0, |seal| seal.version)
}

fn invitation(roster: &Roster, name: &str) -> Invite {
    let (name, experiment, roster) = (name.into(), "schema = 1\n".into(), roster.clone());
    Invite { name, experiment, roster, features: None, columns: Vec::new() }
}

/// The text with a letter, a line or a word changed.
fn changed(text: &str, stream: &mut Stream) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let (a, b) = (stream.below(lines.len()), stream.below(lines.len()));
    match stream.below(4) {
        0 => {
            let mut letters: Vec<char> = text.chars().collect();
            let at = stream.below(letters.len());
            letters[at] = char::from(b"0123456789abcdefnorth\"=[]"[stream.below(25)]);
            return letters.into_iter().collect();
        }
        1 => lines.swap(a, b),
        2 => drop(lines.remove(a)),
        _ => {
            let [from, to] = [0, 1].map(|_| NAMES[stream.below(NAMES.len())]);
            return text.replacen(
                &format!("\"{from}\""),
                &format!("\"{to}\""),
                1 + stream.below(3),
            );
        }
    }
    lines.join("\n")
}

/// Simulates joining with each of some seeds.
pub fn simulate(seeds: Range<u64>, keys: &[Key], stranger: &Key) -> Counts {
    let mut all = Counts::default();
    for seed in seeds {
        let mut world = World::new(seed, keys, stranger);
        world.invite();
        for _ in 0..10 + world.stream.below(60) {
            world.step();
        }
        // The stranger keeps what is on its way.
        world.mail.clear();
        world.settle();
        let Counts { accepted, refused, removed, again, versions } = world.counts;
        all.accepted += accepted;
        refused.into_iter().for_each(|(id, count)| *all.refused.entry(id).or_default() += count);
        all.removed += removed;
        all.again += again;
        all.versions += versions;
    }
    all
}

impl Counts {
    /// Checks that this many runs reached everything.
    pub fn check(&self, runs: usize) {
        eprintln!("{self:?}");
        assert!(self.accepted > 5 * runs && self.removed > runs / 20 && self.again > runs / 50);
        let reasons = [
            "roster/bad-signature",
            "roster/not-organiser",
            "roster/outdated",
            "roster/unknown-node",
            "roster/other-invitation",
            "roster/joined",
        ];
        for reason in reasons {
            assert!(self.refused.contains_key(reason), "{reason}: {self:?}");
        }
    }
}
