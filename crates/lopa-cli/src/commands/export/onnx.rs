//! `lopa export --to onnx`: a node's model for ONNX Runtime and others.

use std::path::Path;
use std::process::ExitCode;

use lopa::data::Target;
use lopa::error::Result;
use lopa_base::store::output;
use lopa_report::export::onnx;

use crate::commands::finished::{ModelArgs, one_model};
use crate::program::Program;

pub fn export(
    args: &ModelArgs,
    node: Option<&str>,
    out: &Path,
    program: &Program,
) -> Result<ExitCode> {
    let model = one_model(args, &program.output)?;
    let node = model.node(node)?;
    let bytes = onnx(&model, node, &program.registries.problems)?;
    output::write(out, &bytes, "the model", output::OTHER)?;
    let features = model.about.features;
    let outputs = match model.about.target() {
        Target::Classes(classes) => {
            format!("`probabilities` [rows, {classes}] and `class` [rows]")
        }
        Target::Numbers(outputs) => format!("`numbers` [rows, {outputs}]"),
        Target::Survival => "`risk` [rows, 1]".into(),
    };
    program.output.note(&format!(
        "{}: `features` [rows, {features}] in, {outputs} out; {}, seed {}, node {}",
        out.display(),
        model.about.algorithm,
        model.about.seed,
        model.name(node)
    ));
    Ok(ExitCode::SUCCESS)
}
