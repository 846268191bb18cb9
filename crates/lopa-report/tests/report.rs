//! Whole reports of small runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lopa::config::Source;
#[cfg(not(feature = "png"))]
use lopa::error::Kind;
use lopa::experiment::Experiment;
use lopa::folder::complete;
use lopa::run::Context;
use lopa::run::trace::Stop;
use lopa_report::export::csv;
#[cfg(not(feature = "png"))]
use lopa_report::figure::Figure;
use lopa_report::html::Report;
use lopa_report::live::{Live, Nodes};
use lopa_report::pictures::{self, ImageFormat, View};
use lopa_report::saved::Saved;
use serde_json::{Value, json};

const ALGORITHMS: &str = "
network = { nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }
run = { seeds = [1, 2], iterations = 20, batch = 5, evaluations = 4 }
[[algorithm]]
name = 'lopa-gt'
alpha = 0.02
beta = 0.5
lambda = 0.5
[[algorithm]]
name = 'dgd'
label = 'dgd-and-co'
alpha = 0.1";

const QUADRATIC: &str = "
name = 'quadratic'
problem = { name = 'quadratic', n = 3, p = 4, condition = 2, heterogeneity = 0.5 }";

const BLOBS: &str = "
name = 'blobs'
problem = { name = 'representation', hidden = [4] }
data = { name = 'blobs' }
partition = { name = 'classes', per_node = 2 }";

/// Runs a small experiment into a folder.
fn run(problem: &str, runs: &Path) -> PathBuf {
    let source = Source::new("small.toml", format!("{problem}{ALGORITHMS}"));
    let experiment = Experiment::read(&source, &lopa::experiment::Registries::default()).unwrap();
    let interrupt = AtomicBool::new(false);
    let context =
        Context { pool: None, data_dir: runs.to_path_buf(), interrupt: &interrupt, probe: None };
    let data = experiment.load_data(&context).unwrap();
    complete(&experiment, data.as_ref(), (runs, 1), &context, &mut ()).unwrap().0
}

fn both(runs: &Path) -> Vec<Saved> {
    [QUADRATIC, BLOBS].iter().map(|text| Saved::read(&run(text, runs)).unwrap()).collect()
}

fn report(runs: Vec<Saved>) -> Report {
    let claims = vec![json!({ "claim": "<i>GT</i> wins", "verdict": "held" })];
    Report { title: "Two </title> runs".into(), runs, claims, view: View::default() }
}

/// The data embedded for the page's script.
fn embedded(html: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let from = html.find(start).unwrap() + start.len();
    let to = from + html[from..].find("</script>").unwrap();
    serde_json::from_str(&html[from..to]).unwrap()
}

#[test]
fn a_report_is_self_contained_and_makes_no_requests() {
    let folder = tempfile::tempdir().unwrap();
    let runs = both(folder.path());
    let html = report(runs.clone()).html();
    for word in ["src=\"", "href=\"http", "url(", "@import", "<link", "<iframe", "fetch("] {
        assert!(!html.contains(word), "`{word}` in the page");
    }
    // Text from users is escaped.
    assert!(!html.contains("<i>GT") && !html.contains("Two </title>"));
    assert!(html.contains("dgd-and-co"));
    // Costs that were not counted have no column.
    let page = html.split("<script type=\"application/json\"").next().unwrap();
    assert!(page.contains("Samples per node") && !page.contains("Virtual seconds"));

    let data = embedded(&html);
    for (run, saved) in data["runs"].as_array().unwrap().iter().zip(&runs) {
        assert_eq!(run["rows"]["rows"].as_array().unwrap().len(), saved.rows.len());
        let algorithms = run["algorithms"].as_array().unwrap();
        assert_eq!(algorithms.len(), 2);
        let first: Vec<f64> = (saved.rows.iter())
            .filter(|row| row.algorithm == "lopa-gt" && row.row.iteration == 0)
            .map(|row| row.row.values["loss"])
            .collect();
        assert_eq!(first.len(), 2, "two seeds");
        let column = &algorithms[0]["points"]["loss"];
        assert_eq!(column["mean"][0].as_f64().unwrap(), (first[0] + first[1]) / 2.0);
        assert_eq!(column["high"][0].as_f64().unwrap(), first[0].max(first[1]));
        for cost in ["iteration", "hessians", "jacobians", "gradients", "samples", "bytes"] {
            assert!(algorithms[1]["points"][cost].is_object(), "{cost}");
        }
    }
    // Without scripts there are curves, networks, labels and tables.
    assert_eq!(html.matches("<div class=\"still\"><svg").count(), 2);
    assert_eq!(html.matches("<h3>Network</h3>").count(), 2);
    assert_eq!(html.matches("<h3>Labels</h3>").count(), 1);
    for text in ["ρ = ", "verdict held", "Every node", "heterogeneity", "data_digest"] {
        assert!(html.contains(text), "{text}");
    }
    // A description of the run.
    for fact in [
        "<dt>Problem</dt><dd>quadratic</dd>",
        "<dt>Data</dt><dd>blobs, classes partition</dd>",
        "<dt>Graph</dt><dd>ring, lazy-metropolis weights</dd>",
        "<dt>Nodes</dt><dd>4</dd>",
        "<dt>Seeds</dt><dd>2 (1, 2)</dd>",
        "<p class=\"closing\">With at most 20 iterations, ",
    ] {
        assert!(html.contains(fact), "{fact}");
    }
}

#[test]
fn divergence_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut saved = Saved::read(&run(QUADRATIC, folder.path())).unwrap();
    saved.results[0].stop = Stop::Diverged;
    saved.results[0].diagnosis = Some("alpha is <too> large".into());
    let html = report(vec![saved]).html();
    assert!(html.contains("diverged at iteration 20: alpha is &lt;too&gt; large"));
}

/// The line of an algorithm in the tables of a page, all of them together.
fn lines(html: &str, start: &str) -> String {
    let rows = html.split("<tr>").filter(|row| row.contains(&format!("</span>{start}")));
    rows.map(|row| row.split("</tr>").next().unwrap()).collect()
}

#[test]
fn what_diverged_is_in_no_mean_never_bold_and_sets_no_axis() {
    let folder = tempfile::tempdir().unwrap();
    let mut saved = Saved::read(&run(QUADRATIC, folder.path())).unwrap();
    let clean = saved.clone();
    // Seed 1 of lopa-gt explodes, all seeds of the other do.
    let wild = |algorithm: &str, seed: u64| algorithm != "lopa-gt" || seed == 1;
    for line in saved.rows.iter_mut().filter(|line| wild(&line.algorithm, line.seed)) {
        if line.row.iteration > 0 {
            line.row.values.values_mut().for_each(|value| *value = 2.82e144);
        }
    }
    for result in saved.results.iter_mut().filter(|one| wild(&one.algorithm, one.seed)) {
        result.stop = Stop::Diverged;
        result.row.values.values_mut().for_each(|value| *value = 2.82e144);
        result.nodes.iter_mut().flatten().for_each(|(_, value)| *value = 2.82e144);
    }
    let html = report(vec![saved]).html();
    let page = html.split("<script type=\"application/json\"").next().unwrap();
    assert!(!page.contains("e144") && !page.contains("10¹⁴"), "an exploded value is shown");
    let (some, none) =
        (lines(page, "lopa-gt (1 of 2 seeds)"), lines(page, "dgd-and-co (0 of 2 seeds)"));
    assert!(some.contains("<td data-title=\"Loss\"><span>"), "{some}");
    assert!(none.contains("<td data-title=\"Loss\" class=\"none\">–</td>"), "{none}");
    for row in [&some, &none] {
        assert!(!row.contains("class=\"best\"") && !row.contains('±'), "{row}");
    }
    assert!(!page.contains("class=\"best\""), "nobody can be ranked");
    assert!(lines(&report(vec![clean]).html(), "lopa-gt").contains("class=\"best\""));
    // The charts show diverged runs, but their means leave them out.
    let algorithms = embedded(&html)["runs"][0]["algorithms"].clone();
    assert_eq!((&algorithms[0]["diverged"], &algorithms[1]["diverged"]), (&1.into(), &2.into()));
    let column = &algorithms[0]["points"]["loss"];
    let highest = column["high"].as_array().unwrap().iter().filter_map(Value::as_f64);
    assert!(highest.fold(0.0, f64::max) < 1e9);
    assert!(column["sd"].as_array().unwrap().iter().all(Value::is_null), "one seed has no spread");
    assert_eq!(algorithms[0]["lost"].as_array().unwrap().len(), 1);
    assert!(page.contains("Thin dotted lines"));
}

#[test]
fn an_unfinished_run_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = run(QUADRATIC, folder.path());
    std::fs::remove_file(path.join("results.json")).unwrap();
    std::fs::write(path.join("metrics.jsonl"), "").unwrap();
    let html = report(vec![Saved::read(&path).unwrap()]).html();
    assert!(html.contains("Settings"));
}

#[test]
fn figures_are_reproducible_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let runs = both(folder.path());
    let write = |name: &str, formats: &[ImageFormat]| {
        let folder = folder.path().join(name);
        let files = pictures::write(&folder, &runs, &View::default(), formats).unwrap();
        files.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    let first = write("one", &[ImageFormat::Svg]);
    assert_eq!(first, write("two", &[ImageFormat::Svg]));
    // Curves and network of both runs, labels of the one that has some.
    assert_eq!(first.len(), 5);
    for svg in first {
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{svg}");
    }
    #[cfg(feature = "png")]
    {
        let all = [ImageFormat::Svg, ImageFormat::Png, ImageFormat::Pdf];
        assert_eq!(ImageFormat::available(), all);
        let (first, second) =
            (write("three", ImageFormat::available()), write("four", ImageFormat::available()));
        assert_eq!(first, second);
        assert_eq!(first.len(), 15);
        let begins: [&[u8]; 3] = [b"<svg", b"\x89PNG", b"%PDF-1.4"];
        for (at, file) in first.iter().enumerate() {
            assert!(file.starts_with(begins[at % 3]));
        }
    }
}

#[cfg(not(feature = "png"))]
#[test]
fn without_the_feature_png_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().join("figures");
    let figure = [("figure".to_string(), Figure::default())];
    let error =
        pictures::save(&figures, &figure, &[ImageFormat::Svg, ImageFormat::Png]).unwrap_err();
    assert_eq!((error.kind, error.id), (Kind::Config, "config/no-png"));
    assert!(error.message.contains("this build cannot render PNG"));
    let hint = error.hint.unwrap();
    assert!(hint.contains("`cargo install --path crates/lopa-cli --features png`"), "{hint}");
    assert!(!figures.exists());
    assert_eq!(ImageFormat::available(), [ImageFormat::Svg]);
    assert_eq!(pictures::save(&figures, &figure, ImageFormat::available()).unwrap().len(), 1);
}

#[test]
fn quantities_that_no_run_measured_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [Saved::read(&run(QUADRATIC, folder.path())).unwrap()];
    let view = View { x: Some("hessian".into()), y: Vec::new() };
    let error = view.check(&runs).unwrap_err();
    assert_eq!((error.id, error.place.as_deref()), ("config/unknown-name", Some("--x")));
    assert!(error.hint.unwrap().contains("`hessians`"));
    let view = View { x: None, y: vec!["phi".into()] };
    view.check(&runs).unwrap();
}

#[test]
fn folders_that_are_not_runs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Saved::read(folder.path()).unwrap_err().id, "storage/read");
    std::fs::write(folder.path().join("manifest.json"), "{").unwrap();
    let error = Saved::read(folder.path()).unwrap_err();
    assert_eq!(error.id, "storage/read");
    assert!(error.place.unwrap().contains("manifest.json:1"));
}

#[test]
fn several_runs_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let runs = both(folder.path());
    let html = report(runs.clone()).html();
    let from = html.find("<section id=\"overview\">").unwrap();
    let overview = &html[from..from + html[from..].find("</section>").unwrap()];
    assert_eq!(overview.matches("<tr>").count(), 1 + 4, "two algorithms of two runs");
    assert!(overview.contains("<a href=\"#run-1\">blobs</a>"), "{overview}");
    assert!(!overview.contains("class=\"best\""), "other problems are no rivals");
    assert!(!report(runs[..1].to_vec()).html().contains("id=\"overview\""));
    // Runs of one experiment are distinguished by their folders.
    let mut twin = runs[0].clone();
    twin.name = "another-folder".into();
    let titles = &embedded(&report(vec![runs[0].clone(), twin]).html())["runs"];
    assert_eq!(titles[0]["title"], json!(runs[0].name));
    assert_eq!(titles[1]["title"], "another-folder");
}

#[test]
fn names_from_outside_are_text_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "<img src=x onerror=alert(1)>\"'&";
    let mut saved = Saved::read(&run(BLOBS, folder.path())).unwrap();
    saved.name = evil.into();
    saved.manifest.name = evil.into();
    saved.manifest.classes = saved.manifest.classes.map(|all| vec![evil.into(); all.len()]);
    saved.rows.iter_mut().for_each(|row| row.algorithm = evil.into());
    saved.rows.iter_mut().for_each(|row| row.row.values.extend([(evil.into(), 1.0)]));
    saved.results.iter_mut().for_each(|entry| entry.algorithm = evil.into());
    saved.settings = saved.settings.replace("\"blobs\"", "\"<img src=x onerror=alert(1)>\"");
    let html = report(vec![saved.clone(), saved]).html();
    assert!(!html.contains("<img"));
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;"));
    // The data have the full name.
    assert_eq!(embedded(&html)["runs"][0]["name"], evil);
}

#[test]
fn headers_are_words() {
    let folder = tempfile::tempdir().unwrap();
    let mut saved = Saved::read(&run(BLOBS, folder.path())).unwrap();
    let unsolved = || [("unsolved_nodes".to_string(), 2.0)];
    saved.rows.iter_mut().for_each(|row| row.row.values.extend(unsolved()));
    let html = report(vec![saved]).html();
    assert!(html.contains("Nodes without an exact inner solution</th>"));
    let heads = html.split("<th scope=\"col\">").skip(1);
    for head in heads.filter_map(|rest| rest.split('<').next()) {
        assert!(!head.contains('_'), "{head}");
    }
}

#[test]
fn a_live_page_is_made_anew_from_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = run(QUADRATIC, folder.path());
    let nodes = |_: &Path| {
        let row = ["<b>alice</b>", "40"].map(String::from).to_vec();
        Some(Nodes {
            words: "waits for <bob>".into(),
            titles: vec!["node", "iteration"],
            rows: vec![row],
        })
    };
    let live = Live { folders: vec![path.clone()], report: report(Vec::new()), nodes };
    let get = |target: &str, host: &str| {
        live.answer(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "127.0.0.1:80")
    };
    assert!(live.is_over().unwrap());
    let page = get("/", "localhost:80");
    assert_eq!((page.status, page.kind), ("200 OK", "text/html; charset=utf-8"));
    assert!(page.body.contains("The run has ended") && page.body.contains("fetch("));
    // How far the nodes are is fetched by itself, and what they are called is not trusted.
    let nodes = get("/nodes", "localhost:80");
    assert_eq!((nodes.status, nodes.kind), ("200 OK", "text/html; charset=utf-8"));
    assert!(nodes.body.contains("waits for &lt;bob&gt;") && nodes.body.contains(">40</td>"));
    assert!(nodes.body.contains("&lt;b&gt;alice") && page.body.contains(&nodes.body));
    let before = get("/version", "127.0.0.1:80").body;
    assert!(page.body.contains(&format!("data-version=\"{before}\"")));
    // A partly written line changes the version, and is not shown until it is complete.
    let (metrics, manifest) = (path.join("metrics.jsonl"), path.join("manifest.json"));
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"done\"", "\"running\"")).unwrap();
    let rows = std::fs::read_to_string(&metrics).unwrap();
    std::fs::write(&metrics, format!("{rows}{{\"algorithm\":\"lop")).unwrap();
    assert!(!live.is_over().unwrap());
    assert_ne!(get("/version", "127.0.0.1:80").body, before);
    let page = get("/", "127.0.0.1:80").body;
    assert!(page.contains("this page follows the run") && page.contains("Results so far"));
    assert!(!page.contains("class=\"closing\""), "nothing is said before the end");
    let shown = &embedded(&page)["runs"][0]["rows"]["rows"];
    assert_eq!(shown.as_array().unwrap().len(), rows.lines().count());
    // Requests from other hosts and for other paths are refused.
    assert_eq!(get("/", "evil.example").status, "403 Forbidden");
    assert_eq!(live.answer("GET / HTTP/1.1\r\n\r\n", "127.0.0.1:80").status, "403 Forbidden");
    assert_eq!(get("/../manifest.json", "127.0.0.1:80").status, "404 Not Found");
    let post = live.answer("POST / HTTP/1.1\r\nhost: localhost:80\r\n\r\n", "127.0.0.1:80");
    assert_eq!(post.status, "405 Method Not Allowed");
    assert_eq!(live.answer("", "127.0.0.1:80").status, "403 Forbidden");
    std::fs::remove_file(metrics).unwrap();
    assert_eq!(get("/", "127.0.0.1:80").status, "500 Internal Server Error");
}

#[test]
fn exports_hold_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let mut saved = Saved::read(&run(QUADRATIC, folder.path())).unwrap();
    // Values that are not finite are left out; each row has the reason why its run ended.
    saved.rows[1].row.values.insert("loss".into(), f64::INFINITY);
    saved.results[0].stop = Stop::Diverged;
    let csv = csv(&saved);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + saved.rows.len());
    let loss = lines[0].iter().position(|name| *name == "loss").unwrap();
    assert_eq!((lines[2][loss], lines[2].last()), ("", Some(&"diverged")));
    assert_eq!(lines[1][loss].parse(), Ok(saved.rows[0].row.values["loss"]));
}
