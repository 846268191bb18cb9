//! Times and events, from a file to personal models that predict risks.

use lopa::math::portable::powf;

use crate::program::Folder;

/// Patients of three clinics whose risk follows a common line; no random numbers.
fn patients(rows: usize) -> String {
    let mut text = String::from("clinic,age,marker,dose,days,died\n");
    for i in 0..rows {
        let off = |step: f64| (i as f64 * step).fract() - 0.5;
        let clinic = ["north", "south", "west"][i % 3];
        let (age, marker, dose) = (off(0.618_034), off(0.414_214), off(0.732_051));
        let risk = 3.0 * age - 4.0 * marker + 0.5 * dose + 0.5 * off(0.236_068);
        let days = (400.0 * powf(0.4, risk)).ceil();
        let died = u8::from(i % 4 != 0);
        text += &format!("{clinic},{:.1},{marker:.4},{dose:.4},{days},{died}\n", 50.0 + 40.0 * age);
    }
    text
}

const FILE: &str = "schema = 1
name = 'risk'
[problem]
name = 'hyperparameter'
loss = 'cox'
start = -4.0
[data]
name = 'csv'
path = 'patients.csv'
label = ['days', 'died']
target = 'survival'
group = 'clinic'
scaling = 'standardise'
test = 0.0
holdout = 0.25
[partition]
name = 'group'
[network]
nodes = 3
graph = 'ring'
weights = 'lazy-metropolis'
[run]
seeds = [1, 2]
iterations = 200
batch = 'full'
evaluations = 2
exact = 'end'
final_theta = 'solved'
[[algorithm]]
name = 'lopa-gt'
[[algorithm]]
name = 'local'
";

/// A clinic that saw hardly any event has no two patients to compare: means are those of the other clinics.
#[test]
fn a_clinic_without_comparable_patients_is_left_out_of_the_mean() {
    let line = |(at, line): (usize, &str)| match line.starts_with("west") && at != 5 {
        true => format!("{}0\n", &line[..line.len() - 1]),
        false => format!("{line}\n"),
    };
    let text: String = patients(240).lines().enumerate().map(line).collect();
    let folder = Folder::with(&[("patients.csv", &text), ("risk.toml", FILE)]);
    let seeds = "run.seeds=[1, 2, 3, 4]";
    let args = ["run", "risk.toml", "--set", seeds, "--format", "json"];
    let runs = folder.lopa(&args).good().json();
    let mut lacking = 0;
    for run in runs.as_array().unwrap() {
        let each = run["nodes"].as_array().unwrap().iter();
        let own: Vec<f64> = each.filter_map(|node| node["holdout_concordance"].as_f64()).collect();
        lacking += 3 - own.len();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        assert!((run["holdout_concordance"].as_f64().unwrap() - mean).abs() < 1e-12, "{run}");
    }
    assert!(lacking > 0, "{runs}");
    let run = folder.run_folder().display().to_string();
    folder.lopa(&["evaluate", &run]).good();
    folder.lopa(&["report", &run, "-o", "report.html"]).good();
    folder.lopa(&["compare", &run]).good();
}

#[test]
fn risks_are_predicted_and_judged_by_their_order() {
    let folder = Folder::with(&[
        ("patients.csv", &patients(240)),
        ("new.csv", &patients(60)),
        ("risk.toml", FILE),
    ]);
    let done = folder.lopa(&["run", "risk.toml", "--out", "runs"]).good();
    assert!(done.stdout.contains("concordance, own rows"), "{}", done.stdout);
    let run = folder.run_folder().display().to_string();
    let again = folder.lopa(&["evaluate", &run, "-a", "lopa-gt"]).good();
    assert!(again.stdout.contains("concordance, own rows"), "{}", again.stdout);
    let evaluate = ["evaluate", &run, "-a", "lopa-gt", "-s", "1", "--input", "new.csv"];
    let json = folder.lopa(&[&evaluate[..], &["--format", "json"]].concat()).good().json();
    assert!(json[0]["concordance"].as_f64().unwrap() > 0.85, "{json}");
    assert_eq!(json[0]["nodes"].as_array().unwrap().len(), 3, "{json}");
    assert_eq!(json[0]["nodes"][0]["events"], 15, "{json}");
    let text = folder.lopa(&evaluate).good().stdout;
    assert!(text.contains("north") && text.contains("events"), "{text}");
    let predict = ["predict", &run, "-a", "lopa-gt", "-s", "1", "--input", "new.csv"];
    let said = folder.lopa(&[&predict[..], &["-o", "said.csv"]].concat()).good();
    assert!(said.stderr.contains("60 rows"), "{}", said.stderr);
    let said = folder.read("said.csv");
    assert!(said.starts_with("risk\n") && said.lines().count() == 61, "{said}");
    folder.lopa(&["export", &run, "-a", "lopa-gt", "-s", "1", "--node", "west", "-o", "m.onnx"]);
    let adapt =
        ["adapt", &run, "-a", "lopa-gt", "-s", "1", "--input", "new.csv", "-o", "new.model"];
    let json = folder.lopa(&[&adapt[..], &["--format", "json"]].concat()).good().json();
    for model in ["adapted", "alone", "mean"] {
        assert!(json[model]["concordance"].as_f64().unwrap() > 0.8, "{model}: {json}");
    }
}

/// The names of the columns say what they are; others are named with `--label`.
#[test]
fn init_writes_a_file_for_times_and_events() {
    let folder = Folder::with(&[
        ("patients.csv", &patients(240)),
        ("other.csv", &patients(240).replacen("days,died", "until,seen", 1)),
        ("none.csv", &patients(9).replace(",1\n", ",0\n")),
    ]);
    let init = ["init", "--nodes-from", "clinic", "--format", "json", "--data"];
    let json = folder.lopa(&[&init[..], &["patients.csv"]].concat()).good().json();
    assert_eq!((&json["events"], &json["features"]), (&180.into(), &3.into()), "{json}");
    assert!(json["concordance"]["lopa-gt"].as_f64().unwrap() > 0.8, "{json}");
    let file = folder.read("patients.toml");
    assert!(file.contains("label = [\"days\", \"died\"]   # the columns to predict"), "{file}");
    assert!(file.contains("target = \"survival\""), "{file}");
    folder.lopa(&["run", "patients.toml", "--set", "run.iterations=20"]).good();
    let named = ["other.csv", "--label", "until,seen"];
    let json = folder.lopa(&[&init[..], &named].concat()).good().json();
    assert_eq!(json["events"], 180, "{json}");
    // Two numbers, of which the second is not 0 or 1.
    let numbers = ["patients.csv", "--label", "days,age", "--force", "--seconds", "0"];
    let json = folder.lopa(&[&init[..], &numbers].concat()).good().json();
    assert_eq!(json["numbers"].as_array().map(Vec::len), Some(2), "{json}");
    assert!(folder.read("patients.toml").contains("target = \"number\""));
    for (args, why) in [
        (&["none.csv"][..], "no event is seen in 9 rows"),
        (&["patients.csv", "--label", "days,days", "--force"], "named twice"),
        (&["patients.csv", "--label", "days,died", "--classes", "0,1", "--force"], "not classes"),
    ] {
        let refused = folder.lopa(&[&init[..], args].concat());
        assert!(refused.code != 0 && refused.stderr.contains(why), "{}", refused.stderr);
    }
}

/// A row's part of the likelihood depends on the other rows at risk.
#[test]
fn rows_cannot_be_protected() {
    let private = FILE
        .replace("'standardise'", "'row'")
        .replace("seeds = [1, 2]", "seeds = [1]")
        .replace("exact = 'end'\nfinal_theta = 'solved'", "exact = 'never'")
        .replace("[[algorithm]]\nname = 'local'\n", "")
        + "[privacy]\nepsilon = 4.0\ndelta = 1e-3\nclip = 1.0\n";
    let folder = Folder::with(&[("patients.csv", &patients(60)), ("risk.toml", &private)]);
    let refused = folder.lopa(&["run", "risk.toml"]);
    assert!(refused.code != 0, "{}", refused.stdout);
    assert!(refused.stderr.contains("depends on the others at risk"), "{}", refused.stderr);
}
