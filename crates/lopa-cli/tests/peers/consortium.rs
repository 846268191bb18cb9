//! Three organisations that know nothing of each other but what they send by e-mail: docs/consortium.md.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::pages::pages;
use crate::ports::free_port;
use crate::program::{Folder, blobs};
use crate::trio::{results, text};

pub const NAMES: [&str; 3] = ["north", "south", "west"];

/// A folder for each organisation, with its rows.
pub struct Sites {
    folder: Folder,
    pub experiment: String,
    /// The network namespaces of the sites, without their numbers, if they are in any.
    pub inside: Option<&'static str>,
}

impl Sites {
    /// With the experiment of the page; classes and numbers of rows differ from site to site.
    pub fn new() -> Sites {
        let page = pages().into_iter().find(|page| page.name() == "docs/consortium.md").unwrap();
        let (_, blocks) = page.parts();
        let experiment = blocks.into_iter().find(|block| block.language == "toml").unwrap().text;
        let sites = Sites { folder: Folder::new(), experiment, inside: None };
        let table = blobs().replace("red", "benign").replace("green", "malignant");
        let (head, rows) = table.split_once('\n').unwrap();
        let rows: Vec<&str> = rows.lines().filter(|row| !row.ends_with("blue")).collect();
        for (at, name) in NAMES.iter().enumerate() {
            std::fs::create_dir(sites.path(name)).unwrap();
            let own = rows.iter().enumerate().filter(|(row, _)| row % 4 % 3 == at);
            let own: String = own.map(|(_, row)| format!("{row}\n")).collect();
            sites.write(name, &format!("{name}.csv"), &format!("{head}\n{own}"));
        }
        sites.write("north", "experiment.toml", &sites.experiment);
        sites
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, file: &str, text: &str) {
        std::fs::write(self.path(name).join(file), text).unwrap();
    }

    /// Sends a file from one site to another.
    pub fn mail(&self, from: &str, file: &str, to: &str, as_: &str) {
        std::fs::copy(self.path(from).join(file), self.path(to).join(as_)).unwrap();
    }

    /// A command at a site, not yet started.
    pub fn command(&self, name: &str, line: &str) -> Command {
        let mut path = vec![Path::new(env!("CARGO_BIN_EXE_lopa")).parent().unwrap().to_path_buf()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut shell = match self.inside {
            None => Command::new("bash"),
            Some(inside) => {
                let host = NAMES.iter().position(|known| *known == name).unwrap() + 1;
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &format!("{inside}{host}"), "bash"]);
                command
            }
        };
        for name in ["LOPA_DATA_DIR", "LOPA_RUNS_DIR", "LOPA_THREADS", "LOPA_KEY_FILE", "NO_COLOR"]
        {
            shell.env_remove(name);
        }
        shell.args(["-euo", "pipefail", "-c", line]).current_dir(self.path(name));
        shell.env("PATH", std::env::join_paths(path).unwrap()).stdin(Stdio::null());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }

    /// What a command prints, to standard output and to standard error; it must succeed.
    pub fn run(&self, name: &str, line: &str) -> [String; 2] {
        let done = self.command(name, line).output().unwrap();
        assert!(done.status.success(), "{name}: {line}: {}", text(&done));
        [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The error of a command, which must fail with this exit code.
    fn refuse(&self, name: &str, line: &str, code: i32) -> String {
        let done = self.command(name, line).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{name}: {line}: {}", text(&done));
        text(&done)
    }

    /// The page's invitations and joining, with free ports of this host for its addresses.
    fn enrol(&self) {
        let at = || format!("--address 127.0.0.1:{}", free_port());
        self.run("north", &format!("lopa invite south west --data north.csv {}", at()));
        self.mail("north", "south.invite", "south", "south.invite");
        self.mail("north", "west.invite", "west", "west.invite");
        self.run("south", &format!("lopa join south.invite --data south.csv {}", at()));
        self.run("west", "lopa join west.invite --data west.csv");
        self.mail("south", "south.reply", "north", "south.reply");
        self.mail("west", "west.reply", "north", "west.reply");
    }
}

/// The commands of the page, each with the site that types it.
pub fn steps() -> Vec<(&'static str, String)> {
    let page = pages().into_iter().find(|page| page.name() == "docs/consortium.md").unwrap();
    let (_, blocks) = page.parts();
    let blocks = blocks.into_iter().filter(|block| block.language == "sh");
    let sites = ["north", "north", "north", "south", "south", "west"];
    let blocks: Vec<_> = blocks.map(|block| block.text).collect();
    assert_eq!(blocks.len(), sites.len(), "{blocks:?}");
    let lines = |(site, text): (&'static str, String)| {
        text.lines().map(|line| (site, line.to_string())).collect::<Vec<_>>()
    };
    sites.into_iter().zip(blocks).flat_map(lines).collect()
}

/// The command of a site that begins so.
pub fn step(site: &str, start: &str) -> String {
    // `lopa node` is not the beginning of `lopa node --check`.
    let begins = |line: &str| match start {
        "lopa node" => line == start,
        _ => line.starts_with(start),
    };
    let mut found = steps().into_iter().filter(|(of, line)| *of == site && begins(line));
    let (_, line) = found.next().unwrap_or_else(|| panic!("{site}: {start}"));
    assert!(found.next().is_none(), "{site}: {start}");
    line
}

#[test]
fn every_command_of_the_page_runs_and_all_get_the_digest_of_one_process() {
    let sites = Sites::new();
    // Addresses on this host take the place of the relay.
    let of = |site: &str, start: &str| {
        let line = step(site, start).replace(" --relay https://relay.example.org", "");
        match (site, start) {
            ("north", "lopa invite") | ("south", "lopa join") => {
                format!("{line} --address 127.0.0.1:{}", free_port())
            }
            _ => line,
        }
    };
    for name in NAMES {
        let count = steps().iter().filter(|(of, _)| *of == name).count();
        assert!(count <= 4, "{name} types {count} commands");
    }
    sites.run("north", &of("north", "lopa invite"));
    let mut prints = Vec::new();
    for name in ["south", "west"] {
        sites.mail("north", &format!("{name}.invite"), name, &format!("{name}.invite"));
        let [print, _] = sites.run(name, &of(name, "lopa join"));
        prints.push(print.trim().to_string());
        let reply = format!("{name}.reply");
        sites.mail(name, &reply, "north", &reply);
    }
    let [_, said] = sites.run("north", &of("north", "lopa roster accept"));
    for (name, print) in ["south", "west"].iter().zip(&prints) {
        assert_eq!(print.len(), 23, "{print}");
        assert!(said.contains(&format!("{name}: {print}")), "{print}: {said}");
    }
    let shown =
        "lopa roster show roster.toml 2>&1 | sed -n 's/.*fingerprint \\([0-9 ]*\\);.*/\\1/p'";
    let [want, _] = sites.run("north", shown);
    assert_eq!(want.trim().len(), 23, "{want}");
    for name in ["south", "west"] {
        sites.mail("north", "roster.toml", name, "from-north.toml");
        sites.run(name, &of(name, "lopa roster accept"));
        assert_eq!(sites.run(name, shown)[0], want, "{name}");
    }
    let together = |starts: &str| -> Vec<Output> {
        let start = |name: &&str| {
            let line = of(name, starts) + " --format json --deadline 60";
            sites.command(name, &line).spawn().unwrap()
        };
        let nodes: Vec<Child> = NAMES.iter().map(start).collect();
        nodes.into_iter().map(|node| node.wait_with_output().unwrap()).collect()
    };
    for (name, output) in NAMES.iter().zip(together("lopa node --check")) {
        assert!(output.status.success(), "{name}: {}", text(&output));
    }
    let outputs = together("lopa node");
    let page = pages().into_iter().find(|page| page.name() == "docs/consortium.md").unwrap();
    let typed = page.parts().1.into_iter().filter(|block| block.language == "text");
    let report = typed.map(|block| block.text).find(|text| text.starts_with("lopa report"));
    let report = report.unwrap();
    // One process, with all files in one place.
    sites.mail("south", "south.csv", "north", "south.csv");
    sites.mail("west", "west.csv", "north", "west.csv");
    let [alone, _] = sites.run("north", "lopa run experiment.toml --out alone --format json");
    let alone = results(&serde_json::from_str(&alone).unwrap());
    for (name, output) in NAMES.iter().zip(outputs) {
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert_eq!(results(&serde_json::from_slice(&output.stdout).unwrap()), alone, "{name}");
        let [status, _] = sites.run(name, "lopa status");
        assert!(status.contains(&format!("{name} is done: lopa-gt, seed")), "{status}");
        let [_, said] = sites.run(name, &report.replace("south", name));
        assert!(
            said.contains(&format!("of its own for testing, {name} has an accuracy of")),
            "{said}"
        );
    }
}

#[test]
fn data_that_do_not_fit_are_refused_before_anything_is_written() {
    let sites = Sites::new();
    sites.run("north", "lopa invite south west --data north.csv --address 127.0.0.1:9");
    sites.mail("north", "south.invite", "south", "south.invite");
    let rows = std::fs::read_to_string(sites.path("south").join("south.csv")).unwrap();
    let head = rows.lines().next().unwrap();
    let cases: [(&str, String, &str, i32); 5] = [
        ("a column is renamed", rows.replacen("x,", "w,", 1), "`x` is missing", 3),
        ("labels are spelt otherwise", rows.replace("malignant", "Malignant"), "did you mean", 3),
        ("a cell is no number", rows.replacen("0.", "zero.", 1), "zero", 3),
        ("there are no rows", format!("{head}\n"), "", 3),
        ("the file is empty", String::new(), "", 3),
    ];
    std::fs::remove_file(sites.path("south").join("south.csv")).unwrap();
    for (what, text, says, code) in cases {
        sites.write("south", "mine.csv", &text);
        let error = sites.refuse("south", "lopa join south.invite --data mine.csv", code);
        assert!(error.contains(says), "{what}: {error}");
        for file in ["south.key", "south.csv", "south.reply", "roster.toml", "experiment.toml"] {
            assert!(!sites.path("south").join(file).exists(), "{what}: {file}");
        }
    }
    let none = sites.refuse("south", "lopa join south.invite --data none.csv", 2);
    assert!(none.contains("none.csv"), "{none}");
    // The right file under the hospital's own name; twice, as after a mistake.
    sites.write("south", "mine.csv", &rows);
    sites.run("south", "lopa join south.invite --data mine.csv");
    sites.run("south", "lopa join south.invite --data mine.csv");
    let reply = std::fs::read_to_string(sites.path("south").join("south.reply")).unwrap();
    for column in head.split(',') {
        assert!(!reply.contains(&format!("\"{column}\"")), "{reply}");
    }
}

#[test]
fn an_invitation_writes_nothing_outside_the_folder_and_over_no_file() {
    let sites = Sites::new();
    let twice = sites.refuse("north", "lopa invite south south --name north --data north.csv", 2);
    assert!(twice.contains("named twice"), "{twice}");
    assert!(!sites.path("north").join("south.invite").exists());
    // The organiser's rows may be anywhere; those of others are put nowhere but in their folder.
    for path in ["../{node}.csv", "/tmp/../nowhere/{node}.csv", "a/../../{node}.csv"] {
        let line = format!("path = \"{path}\"");
        let experiment = sites.experiment.replace("path = \"{node}.csv\"", &line);
        assert_ne!(experiment, sites.experiment);
        sites.write("north", "experiment.toml", &experiment);
        let error = sites.refuse("north", "lopa invite south west --data north.csv", 2);
        assert!(error.contains("outside this folder"), "{path}: {error}");
    }
    assert!(!sites.path("north").parent().unwrap().join("north.csv").exists());
    sites.write("north", "experiment.toml", &sites.experiment);
    sites.run("north", "lopa invite south west --data north.csv --address 127.0.0.1:9");
    sites.mail("north", "south.invite", "south", "south.invite");
    // Bytes that are no text are not overwritten.
    let file = sites.path("south").join("experiment.toml");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    let error = sites.refuse("south", "lopa join south.invite --data south.csv", 5);
    assert!(error.contains("cannot be read"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), [0xff, 0xfe]);
    assert!(!sites.path("south").join("south.key").exists());
}

#[test]
fn files_that_were_changed_on_their_way_are_refused() {
    let sites = Sites::new();
    sites.enrol();
    let change = |site: &str, file: &str, from: &str, to: &str| {
        let path = sites.path(site).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        std::fs::write(sites.path(site).join("changed"), text.replacen(from, to, 1)).unwrap();
    };
    change("south", "south.invite", "iterations = 100", "iterations = 101");
    let error = sites.refuse("south", "mkdir -p new; cd new; lopa join ../changed", 7);
    assert!(error.contains("not the one that was signed"), "{error}");
    change("south", "south.invite", "127.0.0.1", "127.0.0.2");
    let error = sites.refuse("south", "cd new; lopa join ../changed", 7);
    assert!(error.contains("not as `north` signed it"), "{error}");
    change("north", "west.reply", "west", "south");
    let error = sites.refuse("north", "lopa roster accept changed", 7);
    assert!(error.contains("not as `south` signed it"), "{error}");
    // Incomplete rosters, other experiments and other keys start no node.
    let error = sites.refuse("north", "lopa node", 2);
    assert!(error.contains("not all nodes have joined: south, west"), "{error}");
    sites.run("north", "lopa roster accept south.reply west.reply");
    sites.run("north", "lopa roster accept south.reply west.reply");
    let error = sites.refuse("north", "lopa node --set run.iterations=7", 7);
    assert!(error.contains("signed the roster for another experiment"), "{error}");
    let error =
        sites.refuse("north", "lopa roster add roster.toml east $(lopa key show north.key)", 2);
    assert!(error.contains("invite the node"), "{error}");
    sites.mail("north", "roster.toml", "south", "from-north.toml");
    change("south", "from-north.toml", "version = ", "version = 1");
    sites.refuse("south", "lopa roster accept changed", 7);
    let error = sites.refuse("south", "lopa roster remove from-north.toml west --key south.key", 7);
    assert!(error.contains("only `north` can change this roster"), "{error}");
    // Without one of them, and with it again.
    sites.run("north", "lopa roster remove roster.toml west");
    sites.mail("north", "roster.toml", "south", "newer.toml");
    sites.run("south", "lopa roster accept newer.toml");
    let error = sites.refuse("south", "lopa roster accept from-north.toml", 7);
    assert!(error.contains("it is version 2, and version 3 is here"), "{error}");
    sites.run("north", "lopa invite west && lopa roster accept west.reply");
}

/// The exit codes and documents of checks that run at the same time.
fn checks(sites: &Sites, names: &[&str], more: &str) -> Vec<(i32, Value)> {
    let line = format!("lopa node --check --format json {more}");
    let nodes: Vec<Child> =
        names.iter().map(|name| sites.command(name, &line).spawn().unwrap()).collect();
    let done = nodes.into_iter().map(|node| node.wait_with_output().unwrap());
    let read = |done: Output| {
        let document = serde_json::from_slice(&done.stdout);
        let document = document.unwrap_or_else(|error| panic!("{error}: {}", text(&done)));
        (done.status.code().unwrap(), document)
    };
    done.map(read).collect()
}

#[test]
fn a_check_names_links_that_work_are_blocked_or_have_other_terms() {
    let sites = Sites::new();
    sites.enrol();
    sites.run("north", "lopa roster accept south.reply west.reply");
    for name in ["south", "west"] {
        sites.mail("north", "roster.toml", name, "from-north.toml");
        sites.run(name, "lopa roster accept from-north.toml");
    }
    // All three check at the same time; `west` has no address, and calls the others.
    for (code, found) in checks(&sites, &NAMES, "") {
        assert_eq!(code, 0, "{found}");
        for neighbour in found.as_array().unwrap() {
            assert_eq!(neighbour["link"], "direct", "{found}");
            assert_eq!(neighbour["same_terms"], true, "{found}");
            assert!(neighbour["clock_seconds"].as_f64().unwrap().abs() < 5.0, "{found}");
            assert!(neighbour["round_trip_seconds"].as_f64().unwrap() < 5.0, "{found}");
            assert_eq!(neighbour["lopa"], env!("CARGO_PKG_VERSION"));
        }
    }
    // An older roster at `west`; nobody at `south`.
    sites.run("north", "lopa roster remove roster.toml west");
    sites.run("north", "lopa invite west && lopa roster accept west.reply");
    for (at, (code, found)) in
        checks(&sites, &["north", "west"], "--deadline 8").into_iter().enumerate()
    {
        assert_eq!(code, 7, "{found}");
        let of = |name: &str| {
            let all = found.as_array().unwrap();
            all.iter().find(|neighbour| neighbour["neighbour"] == name).unwrap().clone()
        };
        assert_eq!(of("south")["link"], "blocked", "{found}");
        assert!(of("south")["remedy"].as_str().unwrap().contains("lopa node --check"), "{found}");
        let differs = of(["west", "north"][at])["differs"].to_string();
        assert!(differs.contains("of the roster"), "{found}");
    }
}
