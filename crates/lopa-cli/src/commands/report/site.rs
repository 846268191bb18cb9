//! `lopa report --site`: a site's own page.

use std::process::ExitCode;

use lopa::data::{self, Agreement, Data};
use lopa::error::{Error, Result};
use lopa::experiment::Experiment;
use lopa::folder::Manifest;
use lopa::folder::model::Model;
use lopa::folder::serve::{Interval, Judged, judge};
use lopa::network::Audit;
use lopa::run::{Outcome, Setup};
use lopa_base::store;
use lopa_report::site::{Sent, SitePage};
use serde_json::{Value, json};

use super::ReportArgs;
use crate::args::ThreadArgs;
use crate::commands::environment::Environment;
use crate::commands::finished::{Finished, ModelArgs};
use crate::program::Program;

pub fn page(args: &ReportArgs, wanted: &str, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let [run] = &args.runs[..] else {
        let message = "a site's page is of one run";
        return Err(Error::config("config/no-meaning", message)
            .at("--site")
            .hint("name one folder"));
    };
    let finished = Finished::open(run)?;
    let (algorithm, seed) = (args.algorithm.clone(), args.seed);
    let models = ModelArgs { run: run.clone(), algorithm, seed, allow_diverged: false };
    let outcome = finished.runs(&models, output)?[0];
    let model = finished.model(outcome)?;
    let node =
        model.node(Some(wanted)).map_err(|error| Error { place: None, ..error }.at("--site"))?;
    let experiment = Experiment::read(&finished.folder.resolved()?, &program.registries)?;
    let manifest = finished.folder.manifest();
    let data = load(&experiment, &model, node, args)?;
    let digest = data.as_ref().map(data::digest);
    if manifest.data_digest.is_some() && digest != manifest.data_digest {
        output.warn("the data is not the data of the run: its digest differs");
    }
    let world = experiment.world(data.as_ref(), outcome.seed)?;
    let setup = experiment.setup(data.as_ref(), &world, outcome.seed);
    let site = judge(&setup, &model, node)?;
    let names: Vec<String> = (0..world.graph.nodes())
        .map(|node| manifest.nodes.get(node).cloned().unwrap_or(format!("node {node}")))
        .collect();
    let exposure = world.rounds.is_none().then(|| {
        let audit = Audit::new(&world.graph, &world.mixing);
        (audit.nodes[node].clone(), names.clone())
    });
    let page = SitePage {
        name: names[node].clone(),
        run: format!(
            "{}: {} with seed {}, {} iterations among {} sites",
            manifest.name,
            outcome.algorithm,
            outcome.seed,
            outcome.row.iteration,
            names.len()
        ),
        site,
        took_part: outcome.took_part(&names),
        sent: sent(&setup, outcome, node, &names)?,
        exposure,
        privacy: model.about.privacy,
        lineage: lineage(manifest, outcome),
    };
    store::output::write(&args.out, page.html().as_bytes(), "the page", store::output::OTHER)?;
    let output = &output.beside(&args.out);
    match output.json() {
        true => output.document(&described(&page, &args.out.display().to_string())),
        false => output.text(&args.out.display().to_string()),
    }
    output.note(&page.verdict());
    Ok(ExitCode::SUCCESS)
}

/// The data of the run; where this folder is of one node among peers, its own file, as all agreed to scale it.
fn load(
    experiment: &Experiment,
    model: &Model,
    node: usize,
    args: &ReportArgs,
) -> Result<Option<Data>> {
    let environment = Environment::new(&ThreadArgs { jobs: Some(1) }, &args.data)?;
    let context = environment.context();
    let spec = experiment.data.as_ref().filter(|spec| spec.preparation.nodes.is_some());
    let Some(spec) = spec.filter(|_| model.lacks_some()) else {
        return experiment.load_data(&context);
    };
    let mut data = experiment.load_data_of(&context, node..node + 1)?;
    if let Some(data) = &mut data {
        let (cols, nodes) = (data.train.cols(), experiment.network.nodes);
        let (columns, scaling) = (model.about.columns.as_ref(), model.scaling.of(node));
        data.settle(&Agreement::kept(columns, scaling, cols, nodes), &spec.preparation)?;
    }
    Ok(data)
}

fn sent(setup: &Setup, outcome: &Outcome, node: usize, names: &[String]) -> Result<Sent> {
    let Setup { experiment, world, .. } = *setup;
    let neighbours = world.graph.neighbours(node);
    let rounds = outcome.row.exchanges;
    let messages = rounds as f64 * 2.0 * world.graph.edges().count() as f64;
    let ran = experiment.algorithms.iter().find(|spec| spec.label == outcome.algorithm);
    Ok(Sent {
        rounds,
        neighbours: neighbours.iter().map(|&node| names[node].clone()).collect(),
        message: outcome.row.bytes as f64 / messages.max(1.0),
        vectors: ran.map_or(Ok(Vec::new()), |spec| setup.sends(node, spec))?,
        alters: experiment.messages.is_some(),
    })
}

fn lineage(manifest: &Manifest, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("experiment (SHA-256)", manifest.experiment_digest.clone()),
        ("lopa", manifest.lopa.clone()),
        ("trajectory (SHA-256)", outcome.digest.clone()),
        ("sites", manifest.nodes.join(", ")),
        ("started", manifest.started.clone()),
    ];
    all.extend(manifest.data_digest.clone().map(|digest| ("data here (SHA-256)", digest)));
    all.extend(manifest.ended.clone().map(|ended| ("ended", ended)));
    all.retain(|(_, value)| !value.is_empty());
    all
}

fn described(page: &SitePage, file: &str) -> Value {
    let interval = |Interval { value, low, high }: Interval| json!([value, low, high]);
    let model = |Judged { name, value, gain, .. }: &Judged| json!({ "model": name, "value": interval(*value), "gain": gain.map(interval) });
    let models: Vec<Value> = page.site.models.iter().map(model).collect();
    json!({
        "report": file,
        "site": page.name,
        "measure": page.site.measure,
        "rows": page.site.judged,
        "models": models,
    })
}
