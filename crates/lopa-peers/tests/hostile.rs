//! Strangers, and neighbours that violate the protocol, are refused and logged once; two honest nodes
//! keep exchanging frames.

mod ports;

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use iroh::endpoint::{Connection, QuicTransportConfig, presets};
use iroh::{Endpoint, EndpointAddr, PublicKey, RelayMode, SecretKey};
use lopa::engine::{Event, Wire};
use lopa_peers::{Iroh, Key, Keys, Log, Neighbour, Place, Terms};
use ports::free_port;

const ALPN: &[u8] = b"lopa/1";
const MAX_FRAME: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn terms() -> Terms {
    Terms { experiment: [1; 32], graph: [2; 32], roster: [3; 32], version: 1, entries: 7 }
}

/// A hello, byte by byte.
fn hello(protocol: u64, version: &str, terms: &Terms) -> Vec<u8> {
    let mut bytes = b"lopa peer\n".to_vec();
    bytes.extend(protocol.to_le_bytes());
    let mut lopa = version.as_bytes().to_vec();
    lopa.resize(16, 0);
    bytes.extend(lopa);
    for hash in [terms.experiment, terms.graph, terms.roster] {
        bytes.extend(hash);
    }
    bytes.extend(terms.version.to_le_bytes());
    bytes.extend(terms.entries.to_le_bytes());
    bytes.extend(99u64.to_le_bytes());
    bytes
}

fn right() -> Vec<u8> {
    hello(3, env!("CARGO_PKG_VERSION"), &terms())
}

/// Alice and Bob, who are neighbours. Alice also has Carol in her roster, who never connects
/// honestly.
struct Honest {
    alice: Iroh,
    bob: Iroh,
    lines: Arc<Mutex<Vec<String>>>,
    count: u8,
}

/// The attacker's keys and addresses.
struct Target {
    address: SocketAddr,
    key: PublicKey,
    carol: SecretKey, // stolen, or Carol is the attacker
}

/// Starts Alice and Bob. Carol's link stays down, and no test needs it.
fn honest(folder: &Path) -> (Honest, Target) {
    let key = |name: &str| Key::create(&folder.join(name)).unwrap();
    let keys = ["alice", "bob", "carol"].map(key);
    let addresses = [0, 1].map(|_| SocketAddr::from(([127, 0, 0, 1], free_port())));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let neighbour = |node: usize, name: &str, addresses: Vec<String>| Neighbour {
        node,
        name: name.into(),
        key: keys[node].public(),
        addresses,
    };
    let place = |node: usize, neighbours: Vec<Neighbour>| Place {
        key: keys[node].clone(),
        node,
        members: keys.iter().map(Key::public).collect(),
        listen: addresses[node],
        callable: true,
        relays: Vec::new(),
        neighbours,
        terms: terms(),
        keys: Keys::default(),
        most: MAX_FRAME,
    };
    let logged = lines.clone();
    let log = Log::new(move |_, line| logged.lock().unwrap().push(line.to_string()));
    let stop = || Arc::new(AtomicBool::new(false));
    let bob = neighbour(1, "bob", vec![addresses[1].to_string()]);
    let carol = neighbour(2, "carol", Vec::new());
    let alice = Iroh::start(place(0, vec![bob, carol]), log, stop()).unwrap();
    let back = neighbour(0, "alice", vec![addresses[0].to_string()]);
    let bob = Iroh::start(place(1, vec![back]), Log::new(|_, _| {}), stop()).unwrap();
    let secret = std::fs::read_to_string(folder.join("carol")).unwrap();
    let hex = secret.lines().last().unwrap();
    let digit = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    let carol = SecretKey::from_bytes(&std::array::from_fn(digit));
    let target = Target { address: addresses[0], key: keys[0].public(), carol };
    (Honest { alice, bob, lines, count: 0 }, target)
}

/// The next frame from a node; other events are skipped.
fn frame(wire: &mut Iroh, from: usize) -> Vec<u8> {
    let until = wire.now() + PATIENCE;
    loop {
        match wire.next(until).expect("a frame arrives in time") {
            Event::Frame(node, frame) if node == from => return frame,
            Event::Down(node) => assert_ne!(node, from, "honest links stay up"),
            _ => {}
        }
    }
}

impl Honest {
    fn meet(&mut self) {
        self.bob.meet(PATIENCE, None).unwrap();
        let until = self.alice.now() + PATIENCE;
        while self.alice.next(until).expect("bob connects") != Event::Up(1) {}
        // If both called at once, they agree on one of the two links.
        for wire in [&mut self.alice, &mut self.bob] {
            let until = wire.now() + Duration::from_secs(1);
            while wire.next(until).is_some() {}
        }
    }

    /// Checks that frames arrive in both directions.
    fn talk(&mut self) {
        for _ in 0..5 {
            self.count = self.count.wrapping_add(1);
            let word = vec![self.count; MAX_FRAME];
            self.alice.send(1, &word);
            assert_eq!(frame(&mut self.bob, 0), word);
            self.bob.send(0, &word);
            assert_eq!(frame(&mut self.alice, 1), word);
        }
    }

    /// How many log lines refuse something with these words.
    fn refusals(&self, words: &str) -> usize {
        let lines = self.lines.lock().unwrap();
        let refusal = |line: &&String| line.starts_with("refused") && line.contains(words);
        lines.iter().filter(refusal).count()
    }
}

async fn endpoint(secret: SecretKey) -> Endpoint {
    let config = QuicTransportConfig::builder().max_concurrent_bidi_streams(9u32.into()).build();
    Endpoint::builder(presets::Minimal)
        .secret_key(secret)
        .relay_mode(RelayMode::Disabled)
        .transport_config(config)
        .clear_ip_transports()
        .bind_addr("127.0.0.1:0")
        .unwrap()
        .bind()
        .await
        .unwrap()
}

/// A connection to Alice with a key, if she accepts it.
async fn call(target: &Target, secret: SecretKey, alpn: &[u8]) -> (Endpoint, Option<Connection>) {
    let endpoint = endpoint(secret).await;
    let address = EndpointAddr::new(target.key).with_ip_addr(target.address);
    let connection = tokio::time::timeout(Duration::from_secs(3), endpoint.connect(address, alpn));
    let connection = connection.await.ok().and_then(Result::ok);
    (endpoint, connection)
}

/// Calls, sends bytes on a stream, and returns Alice's answer before she closes it.
async fn say(target: &Target, secret: SecretKey, words: &[u8], finish: bool) -> Option<Vec<u8>> {
    let (endpoint, connection) = call(target, secret, ALPN).await;
    let connection = connection?;
    let (mut out, mut into) = connection.open_bi().await.ok()?;
    let _ = out.write_all(words).await;
    if finish {
        let _ = out.finish();
    }
    let mut answer = Vec::new();
    let mut piece = [0; 512];
    // Alice does not close every stream.
    let patience = Duration::from_millis(1500);
    while let Ok(Ok(Some(n))) = tokio::time::timeout(patience, into.read(&mut piece)).await {
        answer.extend_from_slice(&piece[..n]);
    }
    connection.close(0u32.into(), b"");
    endpoint.close().await;
    Some(answer)
}

fn with(change: impl Fn(&mut Terms)) -> Vec<u8> {
    let mut terms = terms();
    change(&mut terms);
    hello(3, env!("CARGO_PKG_VERSION"), &terms)
}

fn framed(length: u32, bytes: &[u8]) -> Vec<u8> {
    [&right()[..], &length.to_le_bytes(), bytes].concat()
}

/// Wrong bytes from a neighbour with the right key, and what Alice logs about them.
fn wrong_words() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let version = env!("CARGO_PKG_VERSION");
    let hello_of = |protocol, lopa| hello(protocol, lopa, &terms());
    vec![
        ("another experiment", with(|t| t.experiment = [9; 32]), "carol: experiment 09090909"),
        ("another graph", with(|t| t.graph = [9; 32]), "carol: graph 09090909"),
        ("another roster", with(|t| t.roster = [9; 32]), "carol: roster 09090909"),
        ("an older roster", with(|t| t.version = 0), "carol: version 0 of the roster, ours 1"),
        ("other entries", with(|t| t.entries = 8), "carol: 8 entries of x, ours 7"),
        ("another protocol", hello_of(1, version), "(protocol 1)"),
        ("another lopa", hello_of(3, "9.9.9"), "carol: lopa 9.9.9"),
        ("a protocol of all ones", hello_of(u64::MAX, version), "18446744073709551615"),
        ("not a hello", vec![0; 154], "carol: malformed hello"),
        ("a hello with another beginning", [b"lopa pear\n", &right()[10..]].concat(), ""),
        ("half a hello", right()[..70].to_vec(), ""),
        ("no bytes", Vec::new(), ""),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: alice\r\n\r\n".repeat(8), ""),
        ("a frame of no bytes", framed(0, &[]), "a frame of 0 bytes"),
        ("a frame of one byte too many", framed(1001, &[0; 1001]), "a frame of 1001 bytes"),
        ("a frame of 4 GiB", framed(u32::MAX, &[0; 64]), "a frame of 4294967295 bytes"),
        ("a frame of 2 GiB", framed(1 << 31, &[]), "a frame of 2147483648 bytes"),
        ("a frame that is cut", framed(1000, &[0; 10]), ""),
        ("half a length", [&right()[..], &[1, 0]].concat(), ""),
        ("two hellos", [right(), right()].concat(), "a frame of 1634758508 bytes"),
    ]
}

#[test]
fn neighbours_that_violate_the_protocol_are_refused_and_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut honest, target) = honest(folder.path());
    honest.meet();
    let runtime = runtime();
    for (name, words, line) in wrong_words() {
        for finish in [true, true] {
            runtime.block_on(say(&target, target.carol.clone(), &words, finish));
            honest.talk();
        }
        if !line.is_empty() {
            assert_eq!(honest.refusals(line), 1, "{name}: {:?}", honest.lines.lock().unwrap());
        }
    }
    assert!(honest.alice.counters().broken.load(Ordering::Relaxed) >= 20);
}

#[test]
fn each_stranger_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut honest, target) = honest(folder.path());
    honest.meet();
    let runtime = runtime();
    let strangers = [SecretKey::generate(), SecretKey::generate(), SecretKey::generate()];
    for (turn, stranger) in strangers.iter().cycle().take(9).enumerate() {
        let answer = runtime.block_on(say(&target, stranger.clone(), &right(), turn % 2 == 0));
        assert!(answer.is_none_or(|answer| answer.is_empty()), "a stranger gets no answer");
        honest.talk();
    }
    for stranger in &strangers {
        assert_eq!(honest.refusals(&format!("stranger at 127.0.0.1: {}", stranger.public())), 1);
    }
    assert_eq!(honest.alice.counters().strangers.load(Ordering::Relaxed), 9);
    // The handshake fails with another protocol, and with a key that is not Alice's.
    let (_, other) = runtime.block_on(call(&target, target.carol.clone(), b"h3"));
    assert!(other.is_none());
    let elsewhere = Target { key: SecretKey::generate().public(), carol: target.carol, ..target };
    let (_, other) = runtime.block_on(call(&elsewhere, SecretKey::generate(), ALPN));
    assert!(other.is_none());
    honest.talk();
}

#[test]
fn stray_datagrams_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (mut honest, target) = honest(folder.path());
    honest.meet();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut state = 1u32;
    let mut noise = |length: usize| -> Vec<u8> {
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(next).collect()
    };
    let version_one = [0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0];
    let kinds: [(&str, Vec<u8>); 8] = [
        ("nothing", Vec::new()),
        ("one byte", vec![0x40]),
        ("plain text", b"hello alice, this is bob".to_vec()),
        ("a frame of ours in the clear", [&b"lopa\x01\x00\x02\x08"[..], &noise(90)].concat()),
        ("a long header of no version", [&[0xff; 6][..], &noise(1200)].concat()),
        ("an Initial that decrypts to nothing", [&version_one[..], &noise(1184)].concat()),
        ("a short header", [&[0x41][..], &noise(1199)].concat()),
        ("as large as can be", noise(65_000)),
    ];
    for (_, bytes) in &kinds {
        for _ in 0..200 {
            let _ = socket.send_to(bytes, target.address);
        }
        honest.talk();
    }
    for length in 1..400 {
        let _ = socket.send_to(&noise(length), target.address);
    }
    honest.talk();
}

/// What nodes pass on is signed with the keys of the roster.
#[test]
fn nodes_know_each_others_signatures() {
    let folder = tempfile::tempdir().unwrap();
    let (honest, _) = honest(folder.path());
    let signature = honest.alice.sign(b"lopa: what alice says");
    assert_eq!(
        signature,
        honest.alice.sign(b"lopa: what alice says"),
        "a replay has the same bits"
    );
    assert!(honest.bob.verify(0, b"lopa: what alice says", &signature));
    assert!(!honest.bob.verify(0, b"lopa: what alice said", &signature));
    assert!(!honest.bob.verify(1, b"lopa: what alice says", &signature), "bob did not say it");
    assert!(!honest.bob.verify(9, b"lopa: what alice says", &signature), "there is no node 9");
    for byte in 0..signature.len() {
        let mut other = signature;
        other[byte] ^= 1;
        assert!(!honest.bob.verify(0, b"lopa: what alice says", &other));
    }
}

/// Resident memory of this process in kB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_thousand_half_open_connections_do_not_block_honest_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (mut honest, target) = honest(folder.path());
    honest.meet();
    let before = resident();
    let runtime = runtime();
    // First packets of connections that send nothing more, captured at a socket that never answers.
    let trap = UdpSocket::bind("127.0.0.1:0").unwrap();
    trap.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let nowhere =
        Target { address: trap.local_addr().unwrap(), carol: target.carol.clone(), ..target };
    let mut packets = Vec::new();
    let calling = runtime.block_on(endpoint(SecretKey::generate()));
    while packets.len() < 1000 {
        let address = EndpointAddr::new(nowhere.key).with_ip_addr(nowhere.address);
        runtime.block_on(async {
            for _ in 0..50 {
                let (calling, address) = (calling.clone(), address.clone());
                tokio::spawn(async move { calling.connect(address, ALPN).await.is_ok() });
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        });
        let mut buffer = [0; 2048];
        while let Ok((length, _)) = trap.recv_from(&mut buffer) {
            packets.push(buffer[..length].to_vec());
        }
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (sent, packet) in packets.iter().enumerate() {
        let _ = socket.send_to(packet, target.address);
        if sent % 100 == 0 {
            honest.talk();
        }
    }
    // Accepted ones time out and are dropped; meanwhile the honest nodes keep exchanging frames.
    while honest.alice.counters().dropped.load(Ordering::Relaxed) == 0 {
        honest.talk();
    }
    assert!(resident() < before + 64 * 1024, "{before} kB became {} kB", resident());
    let lines = honest.lines.lock().unwrap();
    assert!(lines.iter().filter(|line| !line.contains("bob")).count() <= 2, "{lines:?}");
}

/// Silent connections are dropped in favour of one that sends a hello.
#[test]
fn silent_callers_do_not_keep_others_out() {
    let folder = tempfile::tempdir().unwrap();
    let (mut honest, target) = honest(folder.path());
    honest.meet();
    let runtime = runtime();
    let answer = runtime.block_on(async {
        let endpoint = endpoint(target.carol.clone()).await;
        let mut silent = Vec::new();
        for _ in 0..300 {
            let address = EndpointAddr::new(target.key).with_ip_addr(target.address);
            silent.extend(endpoint.connect(address, ALPN).await.ok());
        }
        assert!(silent.len() > 256, "{} connected", silent.len());
        say(&target, target.carol.clone(), &right(), false).await
    });
    assert!(answer.is_some_and(|answer| answer.starts_with(b"lopa peer")));
    honest.talk();
}

#[test]
fn a_slow_reader_costs_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (mut honest, target) = honest(folder.path());
    honest.meet();
    let before = resident();
    // Bob does not read: Alice's frames are dropped, not kept.
    for _ in 0..200_000 {
        honest.alice.send(1, &[0; MAX_FRAME]);
    }
    assert!(resident() < before + 32 * 1024, "{before} kB became {} kB", resident());
    // Carol sends endlessly, and Alice does not read.
    let runtime = runtime();
    runtime.block_on(async {
        let (_endpoint, connection) = call(&target, target.carol.clone(), ALPN).await;
        let (mut out, _into) = connection.unwrap().open_bi().await.unwrap();
        out.write_all(&right()).await.unwrap();
        let frame = [&1000u32.to_le_bytes()[..], &[1; 1000]].concat();
        for _ in 0..50_000 {
            let sent = tokio::time::timeout(Duration::from_secs(1), out.write_all(&frame)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
        panic!("no back-pressure");
    });
    assert!(resident() < before + 32 * 1024, "{before} kB became {} kB", resident());
}
