//! Run folders: files are read back, also those of other versions; damage is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use lopa::config::Source;
use lopa::data::Data;
use lopa::error::{Error, Kind, Result};
use lopa::experiment::{Experiment, Registries};
use lopa::folder::{Manifest, MetricsRow, RunFolder, RunReader, Status, complete, model_path};
use lopa::run::trace::{COSTS, MEASURES, Row, Stop};
use lopa::run::{Context, Listener, Outcome, Store};
use serde_json::{Value, json};

static NEVER: AtomicBool = AtomicBool::new(false);

const FILES: [&str; 4] = ["manifest.json", "results.json", "metrics.jsonl", "resolved.toml"];

/// A folder that an earlier build wrote.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folders").join(name)
}

fn text(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap()
}

/// A copy that can be damaged.
fn copy(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        fs::copy(fixture(name).join(file), folder.path().join(file)).unwrap();
    }
    folder
}

/// Changes a JSON file.
fn edit(folder: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&text(folder, file)).unwrap();
    change(&mut value);
    fs::write(folder.join(file), serde_json::to_string_pretty(&value).unwrap()).unwrap();
}

/// Changes the n-th line, from 0, of the metrics.
fn edit_line(folder: &Path, n: usize, change: impl FnOnce(&mut Value)) {
    let text = text(folder, "metrics.jsonl");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let mut value = serde_json::from_str(&lines[n]).unwrap();
    change(&mut value);
    lines[n] = value.to_string();
    fs::write(folder.join("metrics.jsonl"), lines.join("\n") + "\n").unwrap();
}

/// Everything that can be read of a folder.
fn read_all(folder: &Path) -> Result<()> {
    let reader = RunReader::open(folder)?;
    reader.results()?;
    reader.rows()?;
    reader.traces()?;
    reader.resolved().map(|_| ())
}

/// The error for a damaged folder: it names the file and the remedy.
fn damage(folder: &Path, file: &str) -> Error {
    let error = read_all(folder).expect_err("it is damaged");
    assert_eq!((error.kind, error.id), (Kind::Storage, "storage/read"), "{error}");
    let place = error.place.as_deref().unwrap_or_default();
    assert!(place.starts_with(&folder.join(file).display().to_string()), "{error}");
    assert!(error.hint.is_some(), "{error}");
    error
}

fn context(interrupt: &AtomicBool) -> Context<'_> {
    Context { pool: None, data_dir: "".into(), interrupt, probe: None }
}

// ---- folders of earlier builds ----

#[test]
fn files_of_earlier_builds_are_written_again_to_the_byte() {
    for name in ["done", "resumed"] {
        let folder = fixture(name);
        let manifest = text(&folder, "manifest.json");
        let parsed: Manifest = serde_json::from_str(&manifest).unwrap();
        assert_eq!(serde_json::to_string_pretty(&parsed).unwrap(), manifest);
        assert!(parsed.other.is_empty(), "all keys are known");
        let results = text(&folder, "results.json");
        let parsed: Vec<Outcome> = serde_json::from_str(&results).unwrap();
        assert_eq!(serde_json::to_string_pretty(&parsed).unwrap(), results);
        for line in text(&folder, "metrics.jsonl").lines() {
            let parsed: MetricsRow = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&parsed).unwrap(), line);
        }
    }
}

/// Without values that differ between times or machines, and without last digits.
fn timeless(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(timeless),
        Value::Object(fields) => {
            // Which earlier builds did not have.
            fields.shift_remove("measuring");
            // Nor checksums.
            fields.shift_remove("check");
            fields.shift_remove("checksums");
            // Nor the number of test rows behind an accuracy.
            fields.shift_remove("judged");
            // Neither did the first builds measure how far the largest class gets.
            fields.retain(|key, _| !key.ends_with("_majority"));
            for (key, value) in fields {
                let varies = ["lopa", "started", "ended", "seconds", "machine", "digest"];
                match varies.contains(&key.as_str()) || key.ends_with("_digest") {
                    true if value.is_null() => {}
                    true => *value = json!("varies"),
                    false => timeless(value),
                }
            }
        }
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap();
            // What rounding leaves of a zero.
            let number = if number.abs() < 1e-15 { 0.0 } else { number };
            *value = json!(format!("{number:.6e}"));
        }
        _ => {}
    }
}

fn timeless_text(text: &str) -> String {
    let mut value = serde_json::from_str(text).unwrap();
    timeless(&mut value);
    value.to_string()
}

#[test]
fn the_same_run_leaves_the_same_files() {
    let old = fixture("done");
    let runs = tempfile::tempdir().unwrap();
    let source = Source::new("resolved.toml", text(&old, "resolved.toml"));
    let experiment = Experiment::read(&source, &Registries::default()).unwrap();
    let data = experiment.load_data(&context(&NEVER)).unwrap();
    let (new, _) =
        complete(&experiment, data.as_ref(), (runs.path(), 1), &context(&NEVER), &mut ()).unwrap();
    for file in ["manifest.json", "results.json"] {
        // Keys are also in the same order: maps keep it.
        assert_eq!(timeless_text(&text(&new, file)), timeless_text(&text(&old, file)), "{file}");
    }
    let lines = |folder: &Path| -> Vec<String> {
        let unchecked = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("check");
            timeless_text(&line.to_string())
        };
        text(folder, "metrics.jsonl").lines().map(unchecked).collect()
    };
    assert_eq!(lines(&new), lines(&old));
    let names = |folder: &Path| -> Vec<_> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.filter(|name| name != ".lock").collect();
        names.sort();
        names
    };
    assert_eq!(names(&new), names(&old));
    assert_eq!(names(&new.join("models")), names(&old.join("models")));
}

#[test]
fn folders_of_earlier_builds_open() {
    let reader = RunReader::open(&fixture("done")).unwrap();
    let manifest = reader.manifest();
    assert_eq!((reader.name().as_str(), manifest.name.as_str()), ("done", "old"));
    assert_eq!((manifest.status, &manifest.seeds[..]), (Status::Done, &[1, 2][..]));
    assert_eq!(manifest.algorithms, ["lopa-gt", "dgd"]);
    assert_eq!(manifest.classes.as_ref().unwrap().len(), 3);
    assert_eq!(manifest.worlds[1].class_counts[2], [2, 1, 3]);
    assert_eq!(manifest.worlds[0].weights[0][0], (0, 0.8333333333333334));
    let experiment = Experiment::read(&reader.resolved().unwrap(), &Registries::default()).unwrap();
    assert_eq!((experiment.name.as_str(), experiment.network.nodes), ("old", 3));
    let results = reader.results().unwrap();
    assert_eq!(results.len(), 4);
    assert!(results[0].is_of("lopa-gt", 1) && results[3].is_of("dgd", 2));
    assert_eq!((results[0].stop, results[0].row.iteration), (Stop::Finished, 6));
    assert_eq!(results[0].nodes[1][1], ("train_accuracy".to_string(), 0.5));
    let rows = reader.rows().unwrap();
    assert_eq!(rows.len(), 12);
    let known =
        |name: &&String| COSTS.contains(&name.as_str()) || MEASURES.contains(&name.as_str());
    assert!(rows.iter().flat_map(|row| row.row.values.keys()).all(|name| known(&name)));
    let traces = reader.traces().unwrap();
    assert_eq!(traces.of("dgd").iter().map(|run| run.rows.len()).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(traces.of("dgd")[0].last("bytes"), Some(2880.0));
    for entry in &results {
        let model = reader.model(&entry.algorithm, entry.seed).unwrap();
        assert_eq!((model.about.seed, model.x.len()), (entry.seed, 3));
    }

    let reader = RunReader::open(&fixture("resumed")).unwrap();
    assert_eq!((reader.manifest().resumed.len(), &reader.manifest().data_digest), (1, &None));
    let results = reader.results().unwrap();
    assert_eq!((results[0].stop, results[1].diagnosis.as_ref()), (Stop::Diverged, None));
    assert!(results[0].diagnosis.as_ref().unwrap().contains("beta = 50"));
    assert!(reader.traces().unwrap().of("wild")[0].diverged);
}

#[test]
fn keys_that_first_builds_did_not_write_are_not_missed() {
    let folder = copy("done");
    edit(folder.path(), "manifest.json", |manifest| {
        let fields = manifest.as_object_mut().unwrap();
        fields.retain(|key, _| !["algorithms", "classes", "ended"].contains(&key.as_str()));
        for world in fields["worlds"].as_array_mut().unwrap() {
            let later = ["weights", "samples", "classes", "class_counts", "partition_digest"];
            world.as_object_mut().unwrap().retain(|key, _| !later.contains(&key.as_str()));
        }
    });
    edit(folder.path(), "results.json", |results| {
        results[0].as_object_mut().unwrap().remove("nodes");
    });
    // Values that were not finite were written as null.
    edit_line(folder.path(), 0, |line| line["loss"] = Value::Null);
    read_all(folder.path()).unwrap();
    let reader = RunReader::open(folder.path()).unwrap();
    assert!(reader.manifest().algorithms.is_empty() && reader.manifest().classes.is_none());
    assert_eq!(reader.rows().unwrap()[0].row.value("loss"), None);
}

#[test]
fn keys_that_later_builds_may_write_do_no_harm() {
    let folder = copy("done");
    edit(folder.path(), "manifest.json", |manifest| {
        manifest["note"] = json!({ "by": ["somebody"] });
        manifest["worlds"][0]["diameter"] = json!(2);
        manifest["machine"]["cores"] = json!(64);
    });
    edit(folder.path(), "results.json", |results| {
        results[0]["note"] = json!("a word");
        results[0]["tags"] = json!(["a", "list"]);
        results[0]["fairness"] = json!(0.5);
    });
    edit_line(folder.path(), 0, |line| {
        line["note"] = json!("a word");
        line["fairness"] = json!(1);
    });
    read_all(folder.path()).unwrap();
    let reader = RunReader::open(folder.path()).unwrap();
    assert_eq!(reader.manifest().other["note"]["by"][0], "somebody");
    let (results, rows) = (reader.results().unwrap(), reader.rows().unwrap());
    assert_eq!(results[0].row.value("fairness"), Some(0.5), "numbers are measures");
    assert_eq!(rows[0].row.value("fairness"), Some(1.0));
    assert_eq!(rows[0].row.value("note"), None);
}

#[test]
fn metrics_of_nodes_that_are_not_finite_come_back_as_such() {
    let mut entry = RunReader::open(&fixture("done")).unwrap().results().unwrap().remove(0);
    entry.nodes[0][0].1 = f64::NAN;
    let text = serde_json::to_string(&entry).unwrap();
    assert!(text.contains(r#""nodes":[{"loss":null,"train_accuracy""#), "{text}");
    let back: Outcome = serde_json::from_str(&text).unwrap();
    assert!(back.nodes[0][0].1.is_nan());
    assert_eq!((&back.nodes[1], &back.row), (&entry.nodes[1], &entry.row));
}

// ---- damage ----

/// A value of a type that no key has.
fn wrong() -> Value {
    json!({ "wrong": [true] })
}

const REQUIRED: [&str; 8] =
    ["lopa", "name", "started", "status", "experiment_digest", "seeds", "threads", "machine"];

#[test]
fn a_manifest_that_lacks_a_key_or_has_a_wrong_one_is_refused_by_name() {
    type Part = fn(&mut Value) -> &mut Value;
    let whole: Part = |manifest| manifest;
    let world: Part = |manifest| &mut manifest["worlds"][1];
    let machine: Part = |manifest| &mut manifest["machine"];
    let parts: [(Part, &[&str]); 3] = [
        (whole, &[&REQUIRED[..], &["worlds"]].concat()),
        (world, &["seed", "graph_digest", "rho", "edges"]),
        (machine, &["arch", "os", "simd"]),
    ];
    for (part, keys) in parts {
        for key in keys {
            let folder = copy("done");
            edit(folder.path(), "manifest.json", |manifest| {
                part(manifest).as_object_mut().unwrap().remove(*key).unwrap();
            });
            let error = damage(folder.path(), "manifest.json");
            assert!(error.message.contains(&format!("`{key}`")), "{key}: {error}");
        }
        let more = ["data_digest", "algorithms", "classes", "weights", "samples", "class_counts"];
        for key in keys.iter().chain(&more) {
            let folder = copy("done");
            let mut there = false;
            edit(folder.path(), "manifest.json", |manifest| {
                let value = part(manifest).as_object_mut().unwrap().get_mut(*key);
                there = value.is_some();
                if let Some(value) = value {
                    *value = wrong();
                }
            });
            if there {
                let error = damage(folder.path(), "manifest.json");
                let text = text(folder.path(), "manifest.json");
                let line = 1 + text.lines().position(|line| line.contains("\"wrong\"")).unwrap();
                let place = error.place.unwrap();
                // The value begins a line before, and ends three lines later.
                let near = |line: usize| place.contains(&format!("manifest.json:{line}:"));
                assert!((line - 1..line + 4).any(near), "{key}: {place}, but it is line {line}");
            }
        }
    }
    let folder = copy("done");
    edit(folder.path(), "manifest.json", |manifest| manifest["status"] = json!("finished"));
    assert!(damage(folder.path(), "manifest.json").message.contains("`finished`"));
    edit(folder.path(), "manifest.json", |manifest| *manifest = json!([]));
    damage(folder.path(), "manifest.json");
}

#[test]
fn a_result_that_lacks_a_key_or_has_a_wrong_one_is_refused_by_name() {
    let own = ["algorithm", "seed", "digest", "stop"];
    for key in own.iter().chain(&COSTS).filter(|key| **key != "virtual_seconds") {
        let folder = copy("done");
        edit(folder.path(), "results.json", |results| {
            results[1].as_object_mut().unwrap().remove(*key).unwrap();
        });
        let error = damage(folder.path(), "results.json");
        assert!(error.message.contains(&format!("`{key}`")), "{key}: {error}");
    }
    for key in own.iter().chain(&COSTS).chain(&["diagnosis", "nodes", "loss", "test_accuracy"]) {
        for value in [wrong(), json!(-1.5e300), json!("x")] {
            let number = ["loss", "test_accuracy", "hessians", "jacobians", "gradients"];
            let number =
                number.contains(key) || ["samples", "seconds", "virtual_seconds"].contains(key);
            let fits = match value {
                Value::Number(_) => number,
                Value::String(_) => ["algorithm", "digest", "diagnosis"].contains(key),
                _ => false,
            };
            if fits {
                continue;
            }
            let folder = copy("done");
            edit(folder.path(), "results.json", |results| results[1][*key] = value.clone());
            let error = damage(folder.path(), "results.json");
            if COSTS.contains(key) || ["loss", "test_accuracy"].contains(key) {
                assert!(error.message.contains(&format!("`{key}`")), "{key}: {error}");
            }
        }
    }
    let folder = copy("done");
    edit(folder.path(), "results.json", |results| results[1]["nodes"][2]["loss"] = json!("x"));
    assert!(damage(folder.path(), "results.json").message.contains("`loss` of a node"));
    for content in ["", "{}", "3", "[{}]", "[null]", "[", "\u{feff}[]"] {
        fs::write(folder.path().join("results.json"), content).unwrap();
        damage(folder.path(), "results.json");
    }
}

#[test]
fn a_measurement_that_is_damaged_is_named_by_its_line() {
    let line = |error: Error| error.place.unwrap().rsplit(':').next().unwrap().to_string();
    // Without `[time]` there are no virtual seconds.
    for key in ["algorithm", "seed"].iter().chain(&COSTS).filter(|key| **key != "virtual_seconds") {
        let folder = copy("done");
        edit_line(folder.path(), 4, |line| {
            line.as_object_mut().unwrap().remove(*key).unwrap();
        });
        let error = damage(folder.path(), "metrics.jsonl");
        assert!(error.message.contains(&format!("`{key}`")), "{key}: {error}");
        assert_eq!(line(error), "5");
    }
    for key in ["algorithm", "seed", "loss"].iter().chain(&COSTS) {
        let folder = copy("done");
        edit_line(folder.path(), 11, |line| line[*key] = wrong());
        assert_eq!(line(damage(folder.path(), "metrics.jsonl")), "12", "{key}");
    }
    // Any byte that is not UTF-8, in any line.
    let folder = copy("done");
    let whole = fs::read(folder.path().join("metrics.jsonl")).unwrap();
    for at in (0..whole.len()).step_by(41) {
        let mut bytes = whole.clone();
        bytes[at] = 0xff;
        fs::write(folder.path().join("metrics.jsonl"), &bytes).unwrap();
        let number = 1 + whole[..at].iter().filter(|&&byte| byte == b'\n').count();
        let error = damage(folder.path(), "metrics.jsonl");
        assert_eq!(line(error), number.to_string(), "byte {at}");
    }
    for content in ["[]\n", "\n", "{}\n"] {
        fs::write(folder.path().join("metrics.jsonl"), content).unwrap();
        assert_eq!(line(damage(folder.path(), "metrics.jsonl")), "1");
    }
}

#[test]
fn files_cut_at_any_byte_are_refused() {
    for file in ["manifest.json", "results.json"] {
        let folder = copy("done");
        let whole = fs::read(folder.path().join(file)).unwrap();
        for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
            fs::write(folder.path().join(file), &whole[..length]).unwrap();
            damage(folder.path(), file);
        }
    }
}

#[test]
fn a_last_line_may_be_cut_as_long_as_the_folder_is_not_done() {
    let folder = copy("done");
    let set = |status: &str| {
        edit(folder.path(), "manifest.json", |manifest| manifest["status"] = json!(status));
    };
    let whole = text(folder.path(), "metrics.jsonl");
    let path = folder.path().join("metrics.jsonl");
    for length in (0..whole.len()).step_by(13) {
        let cut = &whole[..length];
        fs::write(&path, cut).unwrap();
        let lines = cut.lines().count();
        let whole_lines = whole.lines().take(lines).map(|line| line.len() + 1).sum::<usize>();
        // The newline alone may be missing.
        let torn = length + 1 < whole_lines;
        set("done");
        assert_eq!(read_all(folder.path()).is_err(), torn, "{length} bytes");
        for status in ["running", "interrupted", "failed"] {
            set(status);
            let rows = RunReader::open(folder.path()).unwrap().rows().unwrap();
            assert_eq!(rows.len(), lines - usize::from(torn), "{length} bytes");
        }
    }
    // Half a line before others was not left by a process that died.
    let (first, rest) = whole.split_at(100);
    fs::write(&path, format!("{first}\n{rest}")).unwrap();
    set("running");
    assert!(damage(folder.path(), "metrics.jsonl").place.unwrap().ends_with("metrics.jsonl:1"));
}

#[test]
fn files_that_are_missing_are_named() {
    let nowhere = tempfile::tempdir().unwrap();
    for path in [nowhere.path().to_path_buf(), nowhere.path().join("no"), fixture("README.md")] {
        let error = RunReader::open(&path).unwrap_err();
        assert_eq!(error.id, "storage/read");
        assert!(error.message.contains("not a run folder"), "{error}");
        assert!(error.hint.unwrap().contains("lopa ls"));
    }
    for file in ["metrics.jsonl", "resolved.toml"] {
        let folder = copy("done");
        fs::remove_file(folder.path().join(file)).unwrap();
        assert!(damage(folder.path(), file).message.contains("missing"));
    }
    let folder = copy("done");
    fs::remove_file(folder.path().join("results.json")).unwrap();
    assert!(RunReader::open(folder.path()).unwrap().results().unwrap().is_empty());
    assert!(RunReader::open(folder.path()).unwrap().traces().unwrap().runs.is_empty());
    fs::create_dir(folder.path().join("results.json")).unwrap();
    damage(folder.path(), "results.json");
    let folder = copy("done");
    fs::write(folder.path().join("resolved.toml"), b"name = '\xff'").unwrap();
    damage(folder.path(), "resolved.toml");
    let error = RunReader::open(folder.path()).unwrap().model("lopa-gt", 1).unwrap_err();
    assert_eq!(error.id, "storage/model");
}

/// The folder of a run on data, made anew.
fn made(runs: &Path) -> PathBuf {
    let source = Source::new("resolved.toml", text(&fixture("done"), "resolved.toml"));
    let experiment = Experiment::read(&source, &Registries::default()).unwrap();
    let data = experiment.load_data(&context(&NEVER)).unwrap();
    complete(&experiment, data.as_ref(), (runs, 1), &context(&NEVER), &mut ()).unwrap().0
}

#[test]
fn a_changed_byte_of_results_experiment_or_partition_is_noticed() {
    let runs = tempfile::tempdir().unwrap();
    let folder = made(runs.path());
    let check = || read_all(&folder).and_then(|()| RunReader::open(&folder)?.check());
    check().unwrap();
    for file in ["results.json", "resolved.toml", "partition-seed2.json"] {
        let whole = fs::read(folder.join(file)).unwrap();
        for at in (0..whole.len()).step_by(1 + whole.len() / 300) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            // A last digit may change without changing the number: the values are what is checked.
            let values = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
            if values(&bytes).is_some_and(|changed| Some(changed) == values(&whole)) {
                continue;
            }
            fs::write(folder.join(file), &bytes).unwrap();
            let error = check().expect_err(&format!("{file}, byte {at}"));
            assert_eq!((error.kind, error.id), (Kind::Storage, "storage/read"), "{error}");
            assert!(error.place.unwrap().contains(file), "{file}, byte {at}");
        }
        fs::write(folder.join(file), &whole).unwrap();
    }
    // Nor may an entry go, come twice, or change its place.
    let whole: Vec<Value> = serde_json::from_str(&text(&folder, "results.json")).unwrap();
    let first = &whole[0];
    let changed = [whole[1..].to_vec(), [&whole[..], std::slice::from_ref(first)].concat(), {
        let mut turned = whole.clone();
        turned.swap(0, 1);
        turned
    }];
    for entries in changed {
        edit(&folder, "results.json", |results| *results = json!(entries));
        assert!(damage(&folder, "results.json").message.contains("checksum"));
    }
    edit(&folder, "results.json", |results| *results = json!(whole));
    check().expect("what is only laid out otherwise is sound");
}

#[cfg(unix)]
#[test]
fn the_end_of_a_run_removes_nothing_behind_a_link_and_nothing_of_other_names() {
    let (runs, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let finish = |runs: &Path| go(runs, &mut Heard::default(), &NEVER).unwrap();
    let folder = stopped(runs.path());
    let checkpoints = folder.join("checkpoints");
    for entry in fs::read_dir(&checkpoints).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), scratch.path().join(entry.file_name())).unwrap();
    }
    fs::write(scratch.path().join("thesis.tex"), "years of work").unwrap();
    fs::remove_dir_all(&checkpoints).unwrap();
    std::os::unix::fs::symlink(scratch.path(), &checkpoints).unwrap();
    finish(runs.path());
    assert_eq!(fs::read_to_string(scratch.path().join("thesis.tex")).unwrap(), "years of work");
    assert!(fs::symlink_metadata(&checkpoints).unwrap().is_symlink());
    assert!(fs::read_dir(scratch.path()).unwrap().count() > 1, "links are not followed to remove");
    assert_eq!(left(&folder), straight());

    // Without a link: ours go, others stay.
    let runs = tempfile::tempdir().unwrap();
    let checkpoints = stopped(runs.path()).join("checkpoints");
    let notes = ["notes.txt", "lopa-gt-seed1.7", "other-seed1.0", "lopa-gt-seed99.1"];
    notes.iter().for_each(|name| fs::write(checkpoints.join(name), name).unwrap());
    fs::write(checkpoints.join("lopa-lg-seed1.0.partial"), "half").unwrap();
    finish(runs.path());
    let mut left: Vec<String> = fs::read_dir(&checkpoints)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["lopa-gt-seed1.7", "lopa-gt-seed99.1", "notes.txt", "other-seed1.0"]);
}

#[cfg(unix)]
#[test]
fn links_in_the_place_of_our_files_are_not_written_through() {
    use std::os::unix::fs::symlink;
    let (runs, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let precious = other.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    let folder = made(runs.path());
    edit(&folder, "manifest.json", |manifest| manifest["status"] = json!("interrupted"));
    // Unfinished files are written anew; a link there goes, and its target stays.
    for file in ["manifest.json", "results.json"] {
        symlink(&precious, folder.join(format!("{file}.partial"))).unwrap();
    }
    made(runs.path());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert!(fs::symlink_metadata(folder.join("manifest.json")).unwrap().is_file());
    // A lock or measurements behind a link are refused by name.
    for file in [".lock", "metrics.jsonl"] {
        let kept = fs::read(folder.join(file)).unwrap();
        fs::remove_file(folder.join(file)).unwrap();
        symlink(&precious, folder.join(file)).unwrap();
        let source = Source::new("resolved.toml", text(&fixture("done"), "resolved.toml"));
        let experiment = Experiment::read(&source, &Registries::default()).unwrap();
        let data = experiment.load_data(&context(&NEVER)).unwrap();
        let refused = RunFolder::resume(runs.path(), &experiment, data.as_ref(), 1).err().unwrap();
        assert_eq!(refused.kind, Kind::Storage, "{refused}");
        assert!(refused.place.as_ref().unwrap().contains(file), "{refused}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "{file}");
        fs::remove_file(folder.join(file)).unwrap();
        fs::write(folder.join(file), kept).unwrap();
    }
    // What is in a lock stays there.
    fs::write(folder.join(".lock"), "a note").unwrap();
    made(runs.path());
    assert_eq!(fs::read_to_string(folder.join(".lock")).unwrap(), "a note");
}

#[test]
fn a_name_too_long_for_a_file_is_refused_before_anything_runs() {
    for (length, good) in [(1, true), (200, true), (201, false), (300, false), (5000, false)] {
        let long = "a".repeat(length);
        for (key, set) in [("name", "name"), ("label", "algorithm.1.label")] {
            let sets = vec![format!("{set}=\"{long}\"")];
            let source = Source { sets, ..Source::new("e.toml", EXPERIMENT) };
            let read = Experiment::read(&source, &Registries::default());
            assert_eq!(read.is_ok(), good, "{key} of {length} letters");
            let Err(error) = read else { continue };
            assert_eq!(error.id, "config/out-of-range");
            assert!(error.message.contains(&format!("{length} letters")), "{error}");
            assert!(error.hint.is_some() && error.place.unwrap().contains(key));
        }
    }
    // The longest that is allowed ends up in names that file systems take.
    let runs = tempfile::tempdir().unwrap();
    let long = "b".repeat(200);
    let sets = vec![
        format!("name=\"{long}\""),
        format!("algorithm.1.label=\"{long}\""),
        format!("run.seeds=[{}]", i64::MAX),
    ];
    let source = Source { sets, ..Source::new("e.toml", EXPERIMENT) };
    let experiment = Experiment::read(&source, &Registries::default()).unwrap();
    complete(&experiment, None, (runs.path(), 1), &context(&NEVER), &mut ()).unwrap();
}

// ---- resuming ----

const EXPERIMENT: &str = "
name = 'small'
problem = { name = 'quadratic', n = 2, p = 2, noise = 0.3, samples = 10 }
network = { nodes = 3, graph = 'path' }
run = { seeds = [1, 2], iterations = 60, batch = 4, evaluations = 6 }
checkpoint = { iterations = 7 }
[[algorithm]]
name = 'lopa-gt'
alpha = 0.01
beta = 0.1
lambda = 0.1
[[algorithm]]
name = 'lopa-lg'
alpha = 0.01
beta = 0.1
lambda = 0.1";

fn experiment() -> Experiment {
    Experiment::read(&Source::new("small.toml", EXPERIMENT), &Registries::default()).unwrap()
}

/// Records events; requests a stop in one run at one iteration.
#[derive(Default)]
struct Heard<'a> {
    stop: Option<((&'a str, u64), u64, &'a AtomicBool)>,
    begun: Vec<(String, u64)>,
    skipped: usize,
    resumed: Vec<Option<u64>>,
    warnings: Vec<String>,
    rows: usize,
    ended: usize,
}

impl Listener for Heard<'_> {
    fn begin(&mut self, algorithm: &str, seed: u64) {
        self.begun.push((algorithm.into(), seed));
    }
    fn skip(&mut self, _: &str, _: u64) {
        self.skipped += 1;
    }
    fn resumed(&mut self, from: Option<u64>) {
        self.resumed.push(from);
    }
    fn warn(&mut self, text: &str) {
        self.warnings.push(text.into());
    }
    fn row(&mut self, algorithm: &str, seed: u64, row: &Row) {
        self.rows += 1;
        if let Some((run, at, flag)) = self.stop {
            flag.fetch_or(run == (algorithm, seed) && row.iteration >= at, Ordering::Relaxed);
        }
    }
    fn end(&mut self, _: &Outcome) {
        self.ended += 1;
    }
}

/// Does the missing runs.
fn go(runs: &Path, listener: &mut Heard, interrupt: &AtomicBool) -> Result<PathBuf> {
    let context = context(interrupt);
    complete(&experiment(), None, (runs, 1), &context, listener).map(|(folder, _)| folder)
}

/// A folder in which the second of four runs was stopped at iteration 31, after its checkpoint.
fn stopped(runs: &Path) -> PathBuf {
    let flag = AtomicBool::new(false);
    let stop = Some((("lopa-lg", 1), 30, &flag));
    go(runs, &mut Heard { stop, ..Heard::default() }, &flag).unwrap()
}

/// Results and rows without their times.
fn left(folder: &Path) -> (Vec<String>, Vec<String>) {
    let reader = RunReader::open(folder).unwrap();
    let mut results = reader.results().unwrap();
    results.iter_mut().for_each(|entry| (entry.row.seconds, entry.measuring) = (0.0, 0.0));
    let mut rows = reader.rows().unwrap();
    rows.iter_mut().for_each(|line| line.row.seconds = 0.0);
    (
        results.iter().map(|entry| json!(entry).to_string()).collect(),
        rows.iter().map(|row| json!(row).to_string()).collect(),
    )
}

fn straight() -> (Vec<String>, Vec<String>) {
    let runs = tempfile::tempdir().unwrap();
    left(&go(runs.path(), &mut Heard::default(), &NEVER).unwrap())
}

#[test]
fn a_stopped_run_resumes_and_its_listener_hears_of_it() {
    let runs = tempfile::tempdir().unwrap();
    let folder = stopped(runs.path());
    let manifest = RunReader::open(&folder).unwrap().manifest().clone();
    assert_eq!((manifest.status, manifest.worlds.len()), (Status::Interrupted, 1));
    assert!(manifest.ended.is_some() && manifest.resumed.is_empty());
    // A user's own keys in the manifest are kept.
    edit(&folder, "manifest.json", |manifest| manifest["note"] = json!("mine"));
    let mut heard = Heard::default();
    assert_eq!(go(runs.path(), &mut heard, &NEVER).unwrap(), folder);
    assert_eq!((heard.skipped, heard.begun.len(), heard.ended), (1, 3, 3));
    assert_eq!((&heard.resumed[..], &heard.warnings[..]), (&[Some(31)][..], &[][..]));
    assert_eq!(left(&folder), straight());
    let manifest = RunReader::open(&folder).unwrap().manifest().clone();
    assert_eq!((manifest.status, manifest.worlds.len()), (Status::Done, 2));
    assert_eq!((manifest.resumed.len(), &manifest.other["note"]), (1, &json!("mine")));
    let mut heard = Heard::default();
    go(runs.path(), &mut heard, &NEVER).unwrap();
    assert_eq!((heard.skipped, heard.begun.len(), heard.rows), (4, 0, 0));
}

#[test]
fn checkpoints_that_are_refused_are_told_of() {
    let runs = tempfile::tempdir().unwrap();
    let folder = stopped(runs.path());
    for turn in ["0", "1"] {
        fs::write(folder.join(format!("checkpoints/lopa-lg-seed1.{turn}")), "").unwrap();
    }
    let mut heard = Heard::default();
    go(runs.path(), &mut heard, &NEVER).unwrap();
    assert_eq!((&heard.resumed[..], heard.warnings.len()), (&[None][..], 2));
    assert_eq!(left(&folder), straight());
}

#[test]
fn damaged_measurements_of_the_run_that_was_cut_are_taken_again() {
    for newline in [true, false] {
        let runs = tempfile::tempdir().unwrap();
        let folder = stopped(runs.path());
        let path = folder.join("metrics.jsonl");
        let mut bytes = fs::read(&path).unwrap();
        let lines: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'\n').collect();
        // Seven measurements of the first run; the second of the one that was cut is damaged.
        let at = if newline { lines[8] } else { lines[8] - 5 };
        bytes[at] = 0xff;
        fs::write(&path, &bytes).unwrap();
        let mut heard = Heard::default();
        go(runs.path(), &mut heard, &NEVER).unwrap();
        assert!(heard.warnings.iter().all(|text| text.contains("measurements are missing")));
        assert_eq!((heard.skipped, heard.resumed.len()), (1, 1), "{:?}", heard.warnings);
        assert_eq!(left(&folder), straight());
    }
}

#[test]
fn damaged_measurements_of_runs_that_ended_stop_the_resumption() {
    let runs = tempfile::tempdir().unwrap();
    let folder = stopped(runs.path());
    let path = folder.join("metrics.jsonl");
    let whole = fs::read(&path).unwrap();
    let refused = |line: &str, what: &str| {
        let before = fs::read(&path).unwrap();
        let error = go(runs.path(), &mut Heard::default(), &NEVER).unwrap_err();
        assert_eq!(error.id, "storage/read", "{error}");
        assert!(
            error.place.as_ref().unwrap().ends_with(&format!("metrics.jsonl{line}")),
            "{error}"
        );
        assert!(error.message.contains(what) && error.hint.is_some(), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before, "nothing is cut off");
        assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 1, "nothing else is begun");
    };
    for line in [1, 4, 7] {
        let start = |n: usize| {
            let mut ends = (0..whole.len()).filter(|&at| whole[at] == b'\n');
            if n == 1 { 0 } else { ends.nth(n - 2).unwrap() + 1 }
        };
        let mut bytes = whole.clone();
        bytes[start(line) + 20] = 0xff;
        fs::write(&path, &bytes).unwrap();
        refused(&format!(":{line}"), "damaged");
    }
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    fs::write(&path, [&lines[..6], &lines[7..]].concat().concat()).unwrap();
    refused(":7", "it is measurement 8 at the place of 7");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    refused("", "are missing");
    fs::write(&path, &whole).unwrap();
    go(runs.path(), &mut Heard::default(), &NEVER).unwrap();
    assert_eq!(left(&folder), straight());
}

#[test]
fn a_folder_that_is_damaged_is_not_resumed_and_not_replaced() {
    for (file, damage, word) in [
        ("manifest.json", "worlds", "`worlds`"),
        ("manifest.json", "machine", "`machine`"),
        ("results.json", "digest", "`digest`"),
    ] {
        let runs = tempfile::tempdir().unwrap();
        let folder = stopped(runs.path());
        edit(&folder, file, |value| {
            let fields = if file == "results.json" { &mut value[0] } else { value };
            fields.as_object_mut().unwrap().remove(damage).unwrap();
        });
        let refused = |done: Result<bool>| {
            let error = done.expect_err(damage);
            assert_eq!(error.id, "storage/read", "{error}");
            assert!(error.message.contains(word) && error.hint.is_some(), "{error}");
            assert!(error.place.unwrap().contains(file));
        };
        refused(go(runs.path(), &mut Heard::default(), &NEVER).map(|_| true));
        refused(RunFolder::unfinished(runs.path(), &experiment(), None).map(|f| f.is_some()));
        assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 1);
    }
    let runs = tempfile::tempdir().unwrap();
    let folder = stopped(runs.path());
    fs::write(folder.join("manifest.json"), "{ \"lopa\": \"0.").unwrap();
    assert!(go(runs.path(), &mut Heard::default(), &NEVER).is_err());
}

#[test]
fn folders_of_other_versions_and_data_are_passed_over() {
    let unfinished = |runs: &Path| RunFolder::unfinished(runs, &experiment(), None).unwrap();
    let other: [fn(&mut Value); 4] = [
        // Keys of another version.
        |manifest| *manifest = json!({ "lopa": "9.9.9", "networks": {} }),
        |manifest| manifest["experiment_digest"] = json!("0"),
        |manifest| manifest["data_digest"] = json!("0"),
        |manifest| manifest["status"] = json!("done"),
    ];
    for change in other {
        let runs = tempfile::tempdir().unwrap();
        let folder = stopped(runs.path());
        assert!(unfinished(runs.path()).is_some());
        edit(&folder, "manifest.json", change);
        assert!(unfinished(runs.path()).is_none());
    }
}

#[test]
fn a_run_whose_models_are_damaged_is_repeated() {
    let runs = tempfile::tempdir().unwrap();
    let folder = stopped(runs.path());
    let mut opened = RunFolder::unfinished(runs.path(), &experiment(), None).unwrap().unwrap();
    let outcome = opened.ended("lopa-gt", 1).unwrap().unwrap();
    let entry = RunReader::open(&folder).unwrap().results().unwrap().remove(0);
    assert_eq!(outcome.listed(usize::MAX), entry);
    assert_eq!(outcome.models.len(), 3);
    assert!(opened.ended("lopa-lg", 1).unwrap().is_none(), "it was interrupted");
    fs::write(model_path(&folder, "lopa-gt", 1), "").unwrap();
    assert!(opened.ended("lopa-gt", 1).unwrap().is_none());
}

#[test]
fn a_run_that_is_repeated_is_not_measured_twice() {
    let runs = tempfile::tempdir().unwrap();
    let folder = stopped(runs.path());
    fs::write(model_path(&folder, "lopa-gt", 1), "").unwrap();
    let mut heard = Heard::default();
    go(runs.path(), &mut heard, &NEVER).unwrap();
    assert!(heard.warnings.iter().any(|text| text.contains("lopa-gt, seed 1, runs again")));
    assert_eq!(left(&folder), straight());
}

#[test]
fn a_measurement_that_changed_or_moved_is_noticed() {
    let runs = tempfile::tempdir().unwrap();
    let folder = go(runs.path(), &mut Heard::default(), &NEVER).unwrap();
    let path = folder.join("metrics.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let refused = |text: &[u8], line: usize| {
        fs::write(&path, text).unwrap();
        let error = damage(&folder, "metrics.jsonl");
        assert!(error.place.as_ref().unwrap().ends_with(&format!(":{line}")), "{error}");
    };
    // Any digit: the line is still JSON.
    let digits = whole.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at);
    for at in digits.step_by(17) {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
        refused(&bytes, 1 + whole[..at].matches('\n').count());
    }
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    refused([&lines[..3], &lines[2..]].concat().concat().as_bytes(), 4);
    refused([&lines[..3], &lines[4..]].concat().concat().as_bytes(), 4);
    let unchecked = lines[5].split(",\"check\"").next().unwrap().to_string() + "}\n";
    refused([&lines[..5], &[&unchecked], &lines[6..]].concat().concat().as_bytes(), 6);
    fs::write(&path, &whole).unwrap();
    read_all(&folder).unwrap();
}

#[test]
fn a_run_whose_measurements_are_damaged_meanwhile_is_not_done() {
    let runs = tempfile::tempdir().unwrap();
    let folder = go(runs.path(), &mut Heard::default(), &NEVER).unwrap();
    let mut folder = RunFolder::finished(runs.path(), &experiment(), None)
        .unwrap()
        .unwrap_or_else(|| panic!("{} is done", folder.display()));
    let path = folder.path().join("metrics.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes[30] = 0xff;
    fs::write(&path, bytes).unwrap();
    assert_eq!(folder.finish(Status::Done).unwrap_err().id, "storage/read");
    assert_ne!(RunReader::open(folder.path()).unwrap().manifest().status, Status::Done);
}

#[test]
fn a_folder_that_lost_its_manifest_is_not_replaced() {
    let runs = tempfile::tempdir().unwrap();
    let folder = stopped(runs.path());
    fs::remove_file(folder.join("manifest.json")).unwrap();
    let error = go(runs.path(), &mut Heard::default(), &NEVER).unwrap_err();
    assert!(error.id == "storage/read" && error.message.contains("missing"), "{error}");
    assert!(RunFolder::unfinished(runs.path(), &experiment(), None).is_err());
    assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 1);
}

/// A complete model file that was not written by a run.
#[test]
fn models_made_by_hand_are_refused() {
    use lopa::data::Features;
    use lopa::folder::model::{About, Model};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let problems = Registries::default().problems;
    let predicted = |params: &str, x: Vec<f64>, theta: Vec<f64>| {
        let params: toml::Table = params.parse().unwrap();
        let about: About = serde_json::from_value(json!({
            "algorithm": "lopa-gt",
            "seed": 1,
            "problem": "representation",
            "params": params,
            "features": 2,
            "classes": ["a", "b"],
        }))
        .unwrap();
        let scaling = Default::default();
        Model { about, x: vec![x], theta: vec![theta], scaling }.save(&path).unwrap();
        let rows = Features::Dense { cols: 2, values: vec![0.5, 1.5] };
        Model::load(&path).and_then(|model| model.predictions(0, &rows, &problems))
    };
    // Three hidden units: 2 x 3 + 3 numbers, and 3 x 2 + 2 for the head.
    let good = |params: &str| predicted(params, vec![0.1; 9], vec![0.2; 8]);
    assert!(good("hidden = [3]").is_ok(), "{:?}", good("hidden = [3]"));
    for params in [
        "hidden = []",
        "hidden = [0]",
        "hidden = [4]",
        "hidden = [3, 3]",
        "hidden = [9223372036854775807]",
        "hidden = 'abc'",
        "hidden = ['abc']",
        "hidden = [3]\nactivation = 'none'",
        "hidden = [3]\nridge = -1.0",
        "name = 'quadratic'",
        "unknown = 1",
        "",
    ] {
        assert!(good(params).is_err(), "{params}");
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let (mut x, mut theta) = (vec![0.1; 9], vec![0.2; 8]);
        x[4] = bad;
        assert!(predicted("hidden = [3]", x, vec![0.2; 8]).is_err());
        theta[2] = bad;
        assert!(predicted("hidden = [3]", vec![0.1; 9], theta).is_err());
    }
}

#[test]
fn what_keeps_nothing_and_tells_nobody_changes_nothing() {
    let outcomes = experiment().run_with(&context(&NEVER), &mut (), &mut ()).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let data: Option<&Data> = None;
    let mut folder = RunFolder::create(runs.path(), &experiment(), data, 1).unwrap();
    let kept =
        experiment().run_on(data, &context(&NEVER), &mut folder, &mut Heard::default()).unwrap();
    let digests = |outcomes: &[Outcome]| -> Vec<String> {
        outcomes.iter().map(|outcome| outcome.digest.clone()).collect()
    };
    assert_eq!(digests(&outcomes), digests(&kept));
}
