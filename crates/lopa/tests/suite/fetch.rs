//! Fetching data sets from a local server that misbehaves on demand.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flate2::{Compression, write::GzEncoder};
use lopa::data::fetch::{Fetched, fetch};
use lopa::data::{Archive, Published, PublishedFile, State};
use lopa::error::{Error, Kind};
use sha2::{Digest, Sha256};

/// How the server answers a request.
#[derive(Clone, Copy)]
enum Manner {
    /// Sends the whole body, or the requested range.
    Well,
    /// Stops in the middle, for this many requests.
    Truncated(usize),
    /// Answers 404.
    NotFound,
    /// Sends the whole body and ignores ranges.
    NoRanges,
}

/// A server for one body; records the requested ranges.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Option<u64>>>>,
}

impl Server {
    fn new(body: Vec<u8>, manner: Manner) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}/{{file}}", listener.local_addr().expect("bound"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &body, manner, &log);
            }
        });
        Server { address, asked }
    }

    fn asked(&self) -> Vec<Option<u64>> {
        self.asked.lock().expect("nobody panicked").clone()
    }
}

fn serve(
    mut stream: TcpStream,
    body: &[u8],
    manner: Manner,
    log: &Mutex<Vec<Option<u64>>>,
) -> std::io::Result<()> {
    let mut from = None;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok();
        }
        if line.is_empty() {
            break;
        }
    }
    let count = {
        let mut log = log.lock().expect("nobody panicked");
        log.push(from);
        log.len()
    };
    let close = "Connection: close\r\n\r\n";
    if let Manner::NotFound = manner {
        return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n{close}");
    }
    let start = match manner {
        Manner::NoRanges => 0,
        _ => from.unwrap_or(0) as usize,
    };
    if start >= body.len() {
        return write!(stream, "HTTP/1.1 416 Range\r\nContent-Length: 0\r\n{close}");
    }
    let (length, last) = (body.len() - start, body.len() - 1);
    let head = match start {
        0 => "HTTP/1.1 200 OK\r\n".to_string(),
        _ => format!(
            "HTTP/1.1 206 Partial\r\nContent-Range: bytes {start}-{last}/{}\r\n",
            body.len()
        ),
    };
    write!(stream, "{head}Content-Length: {length}\r\n{close}")?;
    let end = match manner {
        Manner::Truncated(times) if count <= times => start + length / 2,
        _ => body.len(),
    };
    stream.write_all(&body[start..end])
}

fn content() -> Vec<u8> {
    (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn gzip(content: &[u8], level: u32) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::new(level));
    packed.write_all(content).expect("vectors accept writes");
    packed.finish().expect("vectors accept writes")
}

fn file(name: &str, content: &[u8]) -> PublishedFile {
    let sha256 = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    PublishedFile { name: name.into(), bytes: content.len() as u64, sha256, packed: None }
}

fn set(mirrors: &[&Server], files: Vec<PublishedFile>) -> Published {
    Published {
        name: "made-up".into(),
        about: String::new(),
        folder: "made-up".into(),
        rows: 0,
        features: 0,
        classes: 0,
        licence: String::new(),
        citation: String::new(),
        mirrors: mirrors.iter().map(|server| server.address.clone()).collect(),
        archive: None,
        files,
    }
}

fn get(set: &Published, folder: &Path) -> Result<Fetched, Error> {
    fetch(set, folder, &mut |_, _, _| {})
}

/// The names of the files of the data set.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("made-up")).expect("the folder exists");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_fetched_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::new(gzip(&content(), 6), Manner::Well);
    let set = set(&[&server], vec![file("data.gz", &content())]);
    let mut reports = Vec::new();
    let first = fetch(&set, folder.path(), &mut |name, done, of| {
        reports.push((name.to_string(), done, of));
    })
    .expect("a good server");
    assert_eq!((first.got.len(), first.kept.len()), (1, 0));
    let (name, done, of) = reports.last().expect("progress was reported").clone();
    assert_eq!((name.as_str(), Some(done)), ("data.gz", of));
    assert_eq!(names(folder.path()), ["data.gz"]);
    let again = get(&set, folder.path()).expect("nothing to do");
    assert_eq!((again.got.len(), again.kept.len()), (0, 1));
    assert_eq!(server.asked(), [None]);
    assert_eq!(set.check(folder.path())[0].1, State::Good);
}

#[test]
fn a_broken_download_goes_on_where_it_broke() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = gzip(&content(), 6);
    let server = Server::new(body.clone(), Manner::Truncated(2));
    let set = set(&[&server], vec![file("data.gz", &content())]);
    get(&set, folder.path()).expect("the third attempt completes");
    let half = body.len() as u64 / 2;
    let asked = server.asked();
    assert_eq!(asked[..2], [None, Some(half)]);
    assert!(asked.len() == 3 && asked[2] > Some(half), "{asked:?}");
    assert_eq!(names(folder.path()), ["data.gz"]);
}

#[test]
fn an_interrupted_command_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = gzip(&content(), 6);
    fs::create_dir(folder.path().join("made-up")).expect("a folder");
    fs::write(folder.path().join("made-up/data.gz.partial"), &body[..1000]).expect("written");
    let server = Server::new(body, Manner::Well);
    get(&set(&[&server], vec![file("data.gz", &content())]), folder.path()).expect("resumed");
    assert_eq!(server.asked(), [Some(1000)]);
}

#[test]
fn a_part_of_something_else_is_fetched_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("made-up")).expect("a folder");
    fs::write(folder.path().join("made-up/data.gz.partial"), [7; 500]).expect("written");
    let server = Server::new(gzip(&content(), 6), Manner::Well);
    get(&set(&[&server], vec![file("data.gz", &content())]), folder.path()).expect("fetched again");
    assert_eq!(server.asked(), [Some(500), None]);
}

#[test]
fn a_server_without_ranges_starts_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = gzip(&content(), 6);
    fs::create_dir(folder.path().join("made-up")).expect("a folder");
    fs::write(folder.path().join("made-up/data.gz.partial"), &body[..1000]).expect("written");
    let server = Server::new(body, Manner::NoRanges);
    get(&set(&[&server], vec![file("data.gz", &content())]), folder.path()).expect("complete");
    assert_eq!(names(folder.path()), ["data.gz"]);
}

#[test]
fn mirrors_are_tried_in_order_and_may_pack_differently() {
    let folder = tempfile::tempdir().expect("a folder");
    let absent = Server::new(Vec::new(), Manner::NotFound);
    let good = Server::new(gzip(&content(), 1), Manner::Well);
    let unused = Server::new(gzip(&content(), 9), Manner::Well);
    let set = set(&[&absent, &good, &unused], vec![file("data.gz", &content())]);
    get(&set, folder.path()).expect("the second mirror has it");
    assert_eq!((absent.asked().len(), good.asked().len(), unused.asked().len()), (1, 1, 0));
}

#[test]
fn corrupted_downloads_are_refused() {
    let mut flipped = content();
    flipped[1234] ^= 1;
    let mut damaged = gzip(&content(), 6);
    damaged[5000] ^= 0xff;
    let cases = [
        (gzip(&flipped, 6), "SHA-256"),
        (damaged, "not what was published"),
        (gzip(&content()[1..], 6), "holds 199999 bytes"),
        (gzip(&[content(), vec![0]].concat(), 6), "holds more than 200000 bytes"),
    ];
    for (body, said) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::new(body, Manner::Well);
        let set = set(&[&server], vec![file("data.gz", &content())]);
        let error = get(&set, folder.path()).expect_err("it is not the published content");
        assert_eq!((error.kind, error.id), (Kind::Data, "data/fetch"));
        assert!(error.message.contains(said), "{said}: {}", error.message);
        assert!(names(folder.path()).is_empty(), "nothing is left behind");
    }
}

#[test]
fn a_download_that_never_gets_whole_keeps_what_came() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::new(gzip(&content(), 6), Manner::Truncated(usize::MAX));
    let set = set(&[&server], vec![file("data.gz", &content())]);
    let error = get(&set, folder.path()).expect_err("it is interrupted every time");
    assert_eq!(error.kind, Kind::Data);
    assert!(error.hint.expect("a remedy").contains("the same command resumes it"));
    assert_eq!(names(folder.path()), ["data.gz.partial"]);
}

#[test]
fn other_files_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("made-up")).expect("a folder");
    fs::write(folder.path().join("made-up/data.gz"), b"my own").expect("written");
    let server = Server::new(gzip(&content(), 6), Manner::Well);
    let set = set(&[&server], vec![file("data.gz", &content())]);
    let error = get(&set, folder.path()).expect_err("it is a user's file");
    assert_eq!((error.kind, error.id), (Kind::Data, "data/different"));
    assert_eq!(fs::read(folder.path().join("made-up/data.gz")).expect("there"), b"my own");
    assert!(server.asked().is_empty());
}

#[test]
fn a_folder_that_cannot_be_made_is_a_storage_error() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("made-up"), b"a file").expect("written");
    let server = Server::new(gzip(&content(), 6), Manner::Well);
    let set = set(&[&server], vec![file("data.gz", &content())]);
    let error = get(&set, folder.path()).expect_err("a file is in the way");
    assert_eq!(error.kind, Kind::Storage);
}

/// A tar archive of files.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in members {
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[156] = b'0';
        archive.extend_from_slice(&header);
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn archived(server: &Server, files: Vec<PublishedFile>) -> Published {
    let archive = Archive { name: "all.tar.gz".into(), bytes: 100_000, inside: "inside".into() };
    Published { archive: Some(archive), ..set(&[server], files) }
}

#[test]
fn archives_are_unpacked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (content()[..1000].to_vec(), content()[1000..2024].to_vec());
    let members: [(&str, &[u8]); 3] =
        [("inside/two.bin", &two), ("inside/readme.html", b"hello"), ("inside/one.bin", &one)];
    let server = Server::new(gzip(&tar(&members), 6), Manner::Well);
    let set = archived(&server, vec![file("one.bin", &one), file("two.bin", &two)]);
    get(&set, folder.path()).expect("a good archive");
    assert_eq!(names(folder.path()), ["one.bin", "two.bin"]);
    assert_eq!(fs::read(folder.path().join("made-up/two.bin")).expect("there"), two);
}

#[test]
fn archives_that_lack_something_are_refused() {
    let one = content()[..1000].to_vec();
    let whole = tar(&[("inside/one.bin", &one)]);
    let mut flipped = one.clone();
    flipped[10] ^= 1;
    let cases = [
        (tar(&[("inside/two.bin", &one)]), "is not in it"),
        (tar(&[("inside/one.bin", &flipped)]), "SHA-256"),
        (whole[..700].to_vec(), "holds"),
        (b"not an archive".to_vec(), "damaged"),
    ];
    for (archive, said) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::new(gzip(&archive, 6), Manner::Well);
        let set = archived(&server, vec![file("one.bin", &one)]);
        let error = get(&set, folder.path()).expect_err("not the published archive");
        assert!(error.message.contains(said), "{said}: {}", error.message);
        assert!(!names(folder.path()).contains(&"one.bin".to_string()));
    }
}

#[test]
fn the_list_of_published_data_sets_is_sound() {
    for set in lopa::data::published() {
        assert!(!set.mirrors.is_empty() && !set.files.is_empty(), "{}", set.name);
        assert!(set.files.iter().all(|file| file.sha256.len() == 64 && file.bytes > 0));
        let one_place = set.archive.is_some() || set.files.len() == 1;
        let fits = |mirror: &String| {
            mirror.starts_with("http") && (one_place || mirror.contains("{file}"))
        };
        assert!(set.mirrors.iter().all(fits), "{}", set.name);
    }
}
