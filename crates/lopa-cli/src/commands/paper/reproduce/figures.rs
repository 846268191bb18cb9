//! The built-in experiments of the figures.

use std::path::Path;

use lopa::config::Source;
use lopa::error::{Error, Result, nearest};
use lopa::experiment::{Exactly, Experiment, Registries, open};
use lopa_paper::reproduce::Part;
use lopa_study::tune::TuneSpec;

use crate::commands::paper::args::FigureArgs;

impl FigureArgs {
    /// The number of seeds, if `readings` are requested; they are not a figure.
    pub fn readings(&self) -> Result<Option<u64>> {
        let asked = self.figures.iter().any(|figure| figure == READINGS);
        match (asked, self.figures.len()) {
            (false, _) => Ok(None),
            (true, 1) => Ok(Some(self.seeds.unwrap_or(if self.quick { 1 } else { 3 }).max(1) as u64)),
            _ => Err(Error::config("config/usage", "`readings` stands alone").hint(
                "run `lopa reproduce readings` and `lopa reproduce` with the figures one after the other",
            )),
        }
    }

    /// A file that readings change.
    pub fn source(&self, name: &str) -> Result<Source> {
        let files = files();
        source(files.iter().find(|file| file.name == name).expect("a file of the figures"), self)
    }

    /// Whether only a tenth is run.
    pub fn quick(&self) -> bool {
        self.quick
    }
}

/// A file: its name without `.toml`, its text, the figures, the data set, the variant.
struct File {
    name: &'static str,
    steps: &'static str,
    text: &'static str,
    figures: &'static [&'static str],
    dataset: &'static str,
    variant: Option<&'static str>,
}

macro_rules! file {
    ($name:literal, $figures:expr, $dataset:literal, $variant:expr) => {
        [
            File {
                name: $name,
                steps: "given",
                text: include_str!(concat!("../../../../experiments/", $name, ".toml")),
                figures: &$figures,
                dataset: $dataset,
                variant: $variant,
            },
            File {
                name: concat!($name, "-tuned"),
                steps: "tuned",
                text: include_str!(concat!("../../../../experiments/", $name, "-tuned.toml")),
                figures: &$figures,
                dataset: $dataset,
                variant: $variant,
            },
        ]
    };
}

/// Files that share a data set are adjacent.
fn files() -> Vec<File> {
    let files = [
        file!("fig1-mnist-4-nodes", ["fig1"], "mnist", None),
        file!("fig2-mnist-8-nodes", ["fig2"], "mnist", None),
        file!("fig3-mnist-iid", ["fig3"], "mnist", Some("iid")),
        file!("fig3-mnist-weak", ["fig3"], "mnist", Some("weak")),
        file!("fig3-mnist-strong", ["fig3"], "mnist", Some("strong")),
        file!("fig5-6-mnist", ["fig5", "fig6"], "mnist", None),
        file!("fig5-6-covtype", ["fig5", "fig6"], "covtype", None),
        file!("fig5-6-covtype-pair", ["appendix"], "covtype", Some("the pair of Figures 5 and 6")),
        file!("fig5-6-cifar10", ["fig5", "fig6"], "cifar10", None),
        file!("fig7-ring", ["fig7"], "mnist", Some("ring")),
        file!("fig7-star", ["fig7"], "mnist", Some("star")),
        file!("fig7-random", ["fig7"], "mnist", Some("random")),
        file!("fig7-metropolis-92", ["fig7"], "mnist", Some("metropolis-92")),
        file!("fig7-metropolis-79", ["fig7"], "mnist", Some("metropolis-79")),
        file!("fig7-metropolis-42", ["fig7"], "mnist", Some("metropolis-42")),
        file!("fig8-mnist", ["fig8"], "mnist", None),
        file!("fig8-covtype", ["fig8"], "covtype", None),
        file!("fig8-covtype-pair", ["appendix"], "covtype", Some("the pair of Figure 8")),
        file!("fig8-cifar10", ["fig8"], "cifar10", None),
    ];
    files.into_iter().flatten().collect()
}

const READINGS: &str = "readings";
const FIGURES: [&str; 10] =
    ["fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "all", READINGS];

/// The settings of `--quick`: the share of the budget, and the number of seeds.
const QUICK: (f64, usize) = (0.1, 2);

/// The requested experiments, on the requested seeds.
pub fn parts(args: &FigureArgs, registries: &Registries) -> Result<Vec<Part>> {
    let files = files();
    let named: Vec<&str> =
        files.iter().filter(|file| file.steps == "given").map(|file| file.name).collect();
    for figure in &args.figures {
        let known = || FIGURES.into_iter().chain(named.iter().copied());
        if !known().any(|name| name == figure) {
            let error = Error::config("config/unknown-name", format!("unknown figure `{figure}`"));
            let near = nearest(figure, known()).map(|near| format!("did you mean `{near}`? "));
            let near = near.unwrap_or_default();
            return Err(error.hint(format!(
                "{near}known: {}; or a file: {}",
                FIGURES.join(", "),
                named.join(", ")
            )));
        }
    }
    // Figure 4 shows the labels of the nodes in Figure 3.
    let asked = |file: &File| {
        args.figures.iter().any(|figure| {
            figure == "all"
                || file.figures.contains(&figure.as_str())
                || file.name.trim_end_matches("-tuned") == figure
                || (figure == "fig4" && file.figures == ["fig3"])
        })
    };
    files.iter().filter(|file| asked(file)).map(|file| part(file, args, registries)).collect()
}

/// A file: built in, or from the folder of changed ones.
fn source(file: &File, args: &FigureArgs) -> Result<Source> {
    let name = format!("{}.toml", file.name);
    match &args.experiments {
        Some(folder) => open(&folder.join(name)),
        None => Source::new(name, file.text).extending(built_in),
    }
}

/// The text of a built-in file that another one extends.
fn built_in(path: &Path) -> Result<String> {
    let named = |file: &&File| path.to_str() == Some(&format!("{}.toml", file.name));
    let unknown = || Error::config("config/unknown-name", "no figure has this file");
    files().iter().find(named).map(|file| file.text.to_string()).ok_or_else(unknown)
}

fn part(file: &File, args: &FigureArgs, registries: &Registries) -> Result<Part> {
    let source = source(file, args)?;
    let mut experiment = Experiment::read(&source, registries)?;
    let run = &mut experiment.run;
    let seeds = args.seeds.unwrap_or(if args.quick { QUICK.1 } else { run.seeds.len() });
    run.seeds = (1..=seeds.max(1) as u64).collect();
    if args.quick {
        run.shorten(QUICK.0);
        run.evaluations = 3;
        // Exact solves would dominate the time of the large problems.
        run.exact = Exactly::Never;
    }
    let File { figures, dataset, variant, steps, .. } = *file;
    Ok(Part { figures, dataset, variant, steps, experiment })
}

/// The search behind the tuned files, without ranges, if it was the same for all.
pub fn search(args: &FigureArgs, registries: &Registries) -> Result<Option<TuneSpec>> {
    let mut all: Vec<Option<TuneSpec>> = Vec::new();
    for file in files().iter().filter(|file| file.steps == "given") {
        let source = source(file, args)?;
        let spec = TuneSpec::of(&source, &Experiment::read(&source, registries)?)?;
        all.push(spec.map(|spec| TuneSpec { ranges: Default::default(), ..spec }));
    }
    let first = all.pop().flatten();
    Ok(first.filter(|first| all.iter().all(|one| one.as_ref() == Some(first))))
}

/// The command that repeats this, with or without seconds and its page.
pub fn command(args: &FigureArgs, times: bool, page: bool) -> String {
    let mut command = format!("lopa reproduce {} --data data", args.figures.join(" "));
    if args.quick {
        command += " --quick";
    }
    if let Some(seeds) = args.seeds {
        command += &format!(" --seeds {seeds}");
    }
    if times {
        command += " --times";
    }
    if page {
        command += " --page docs/reproduction.md";
    }
    command
}
