//! A node's model as an ONNX file: raw features in; probabilities and the most probable class out, or
//! numbers in their own units.
//!
//! ```text
//! features [rows, d] ─ missing values filled ─ scaling: Sub shift ─ Mul factor ─ { MatMul W ─ Add b ─ φ } … Softmax ─► probabilities
//!                                                                            └ ArgMax ─► class
//!                                                          of numbers: … ─ Mul units ─ Add shift ─► numbers
//! ```
//!
//! Numbers are in single precision. Operators are those of opset 13, which every recent runtime
//! supports. The few messages of the format are written by hand: fields as (number, wire type),
//! varints, and lengths before bytes.

use lopa::config::Registry;
use lopa::data::Target;
use lopa::error::{Error, Result};
use lopa::folder::model::Model;
use lopa::problem::AnyProblem;
use lopa::problem::predictor::{Layer, Then};

const IR_VERSION: u64 = 8;
const OPSET: u64 = 13;
const FLOAT: u64 = 1;
const INT64: u64 = 7;

/// The bytes of an ONNX file with the model of one node.
pub fn onnx(model: &Model, node: usize, problems: &Registry<AnyProblem>) -> Result<Vec<u8>> {
    let predictor = model.predictor(node, problems)?;
    let about = &model.about;
    let mut graph = Graph::default();
    let mut last = "features".to_string();
    let scaling = model.scaling.of(node);
    if !scaling.fill.is_empty() {
        graph.tensor("fill", &[scaling.fill.len()], &scaling.fill);
        graph.node("IsNaN", &[&last], "is_missing", &[]);
        last = graph.node("Where", &["is_missing", "fill", &last], "filled", &[]);
    }
    if scaling.log {
        // sign(raw) ln(1 + |raw|)
        graph.tensor("one", &[1], &[1.0]);
        graph.node("Abs", &[&last], "size", &[]);
        graph.node("Add", &["size", "one"], "size_plus_one", &[]);
        graph.node("Log", &["size_plus_one"], "log_size", &[]);
        graph.node("Sign", &[&last], "sign", &[]);
        last = graph.node("Mul", &["sign", "log_size"], "logs", &[]);
    }
    let named = [("Sub", "shift", &scaling.shift), ("Mul", "factor", &scaling.factor)];
    for (op, name, values) in named.into_iter().filter(|(.., values)| !values.is_empty()) {
        graph.tensor(name, &[values.len()], values);
        last = graph.node(op, &[&last, name], &format!("scaled_{name}"), &[]);
    }
    if scaling.row {
        last = graph.node("LpNormalization", &[&last], "shortened", &[("axis", 1), ("p", 2)]);
    }
    for (at, layer) in predictor.layers.iter().map(two_columns).enumerate() {
        let (weights, bias) = (format!("W{at}"), format!("b{at}"));
        graph.tensor(&weights, &[layer.inputs, layer.outputs], &layer.weights);
        last = graph.node("MatMul", &[&last, &weights], &format!("product{at}"), &[]);
        if !layer.bias.is_empty() {
            graph.tensor(&bias, &[layer.outputs], &layer.bias);
            last = graph.node("Add", &[&last, &bias], &format!("scores{at}"), &[]);
        }
        let out = format!("layer{at}");
        last = match layer.then {
            Then::Sigmoid => graph.node("Sigmoid", &[&last], &out, &[]),
            Then::Tanh => graph.node("Tanh", &[&last], &out, &[]),
            Then::Relu => graph.node("Relu", &[&last], &out, &[]),
            Then::Softmax => graph.node("Softmax", &[&last], "probabilities", &[("axis", 1)]),
            Then::Nothing => last,
        };
    }
    match about.target() {
        Target::Classes(_) if last != "probabilities" => {
            let message = "the model's last layer gives no probabilities";
            return Err(Error::config("config/no-meaning", message));
        }
        Target::Classes(classes) => {
            graph.node("ArgMax", &[&last], "class", &[("axis", 1), ("keepdims", 0)]);
            graph.0.message(12, &value("probabilities", FLOAT, Some(classes)));
            graph.0.message(12, &value("class", INT64, None));
        }
        Target::Survival => {
            graph.node("Identity", &[&last], "risk", &[]);
            graph.0.message(12, &value("risk", FLOAT, Some(1)));
        }
        Target::Numbers(outputs) => {
            graph.tensor("units", &[outputs], &scaling.target.units());
            graph.tensor("target_shift", &[outputs], &scaling.target.shift);
            last = graph.node("Mul", &[&last, "units"], "in_units", &[]);
            graph.node("Add", &[&last, "target_shift"], "numbers", &[]);
            graph.0.message(12, &value("numbers", FLOAT, Some(outputs)));
        }
    }
    graph.0.text(2, "lopa");
    graph.0.message(11, &value("features", FLOAT, Some(about.features)));

    let (key, names) = match about.outputs.is_empty() {
        true => ("classes", &about.classes),
        false => ("outputs", &about.outputs),
    };
    let names = serde_json::to_string(names).expect("names are JSON");
    let seed = about.seed.to_string();
    let name = model.name(node);
    let properties = [
        (key, &names),
        ("problem", &about.problem),
        ("algorithm", &about.algorithm),
        ("seed", &seed),
        ("node", &name),
    ];
    let mut file = Message::default();
    file.number(1, IR_VERSION);
    file.text(2, "lopa");
    file.text(3, env!("CARGO_PKG_VERSION"));
    file.message(7, &graph.0);
    let mut opset = Message::default();
    opset.text(1, "");
    opset.number(2, OPSET);
    file.message(8, &opset);
    for (key, value) in properties {
        let mut property = Message::default();
        property.text(1, key);
        property.text(2, value);
        file.message(14, &property);
    }
    Ok(file.0)
}

/// One score z is written as (z, 0): a softmax of both gives the same probability.
fn two_columns(layer: &Layer) -> Layer {
    match (layer.then, layer.outputs) {
        (Then::Softmax, 1) => {
            let both = |values: &[f64]| values.iter().flat_map(|&value| [value, 0.0]).collect();
            let (weights, bias) = (both(&layer.weights), both(&layer.bias));
            Layer { outputs: 2, weights, bias, ..layer.clone() }
        }
        _ => layer.clone(),
    }
}

/// An input or output: rows of `width` entries, or one entry per row.
fn value(name: &str, kind: u64, width: Option<usize>) -> Message {
    let mut shape = Message::default();
    let mut rows = Message::default();
    rows.text(2, "rows");
    shape.message(1, &rows);
    if let Some(width) = width {
        let mut columns = Message::default();
        columns.number(1, width as u64);
        shape.message(1, &columns);
    }
    let mut tensor = Message::default();
    tensor.number(1, kind);
    tensor.message(2, &shape);
    let mut of = Message::default();
    of.message(1, &tensor);
    let mut value = Message::default();
    value.text(1, name);
    value.message(2, &of);
    value
}

/// A graph being built.
#[derive(Default)]
struct Graph(Message);

impl Graph {
    /// Adds an operator with one output, and returns the output's name.
    fn node(&mut self, op: &str, inputs: &[&str], out: &str, attributes: &[(&str, u64)]) -> String {
        let mut node = Message::default();
        inputs.iter().for_each(|input| node.text(1, input));
        node.text(2, out);
        node.text(3, out);
        node.text(4, op);
        for (name, number) in attributes {
            let mut attribute = Message::default();
            attribute.text(1, name);
            attribute.number(3, *number);
            attribute.number(20, 2); // of type INT
            node.message(5, &attribute);
        }
        self.0.message(1, &node);
        out.to_string()
    }

    /// Adds a constant.
    fn tensor(&mut self, name: &str, shape: &[usize], values: &[f64]) {
        let mut tensor = Message::default();
        shape.iter().for_each(|&length| tensor.number(1, length as u64));
        tensor.number(2, FLOAT);
        tensor.text(8, name);
        let bytes: Vec<u8> = values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
        tensor.bytes(9, &bytes);
        self.0.message(5, &tensor);
    }
}

/// A protobuf message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lopa::data::{Features, Scaling, Scalings};
    use lopa::folder::model::About;
    use lopa::math::portable::{exp, ln, tanh};
    use lopa::problem::builtin::problems;

    /// A field of a message: its number, and its bytes or its value.
    type Field<'a> = (u64, &'a [u8], u64);

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a varint ends");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            let mut inside = &[][..];
            if key & 7 == 2 {
                (inside, bytes) = bytes.split_at(value as usize);
            }
            fields.push((key >> 3, inside, value));
        }
        fields
    }

    fn all(bytes: &[u8], field: u64) -> Vec<&[u8]> {
        fields(bytes).into_iter().filter(|(f, ..)| *f == field).map(|(_, b, _)| b).collect()
    }

    fn texts(bytes: &[u8], field: u64) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        all(bytes, field).into_iter().map(text).collect()
    }

    /// Runs the operators of a file on one row, in double precision.
    fn run(file: &[u8], row: &[f64]) -> Vec<f64> {
        let graph = all(file, 7)[0];
        let mut values: std::collections::HashMap<String, Vec<f64>> = Default::default();
        values.insert("features".into(), row.to_vec());
        for tensor in all(graph, 5) {
            let (chunks, rest) = all(tensor, 9)[0].as_chunks::<4>();
            assert!(rest.is_empty());
            let numbers: Vec<f64> =
                chunks.iter().map(|&c| f64::from(f32::from_le_bytes(c))).collect();
            let dims = fields(tensor).into_iter().filter(|(f, ..)| *f == 1).map(|(.., v)| v);
            assert_eq!(dims.product::<u64>(), numbers.len() as u64);
            values.insert(texts(tensor, 8).remove(0), numbers);
        }
        for node in all(graph, 1) {
            let (inputs, out) = (texts(node, 1), texts(node, 2).remove(0));
            let a = values[&inputs[0]].clone();
            let b = inputs.get(1).map(|name| values[name].clone()).unwrap_or_default();
            let pairs = a.iter().zip(&b);
            let result: Vec<f64> = match &texts(node, 4)[0][..] {
                "Sub" => pairs.map(|(a, b)| a - b).collect(),
                "Mul" => pairs.map(|(a, b)| a * b).collect(),
                "Add" if b.len() == 1 => a.iter().map(|a| a + b[0]).collect(),
                "Add" => pairs.map(|(a, b)| a + b).collect(),
                "MatMul" => {
                    let width = b.len() / a.len();
                    (0..width)
                        .map(|o| (0..a.len()).map(|q| a[q] * b[q * width + o]).sum())
                        .collect()
                }
                "Sigmoid" => a.iter().map(|z| 1.0 / (1.0 + exp(-z))).collect(),
                "Abs" => a.iter().map(|z| z.abs()).collect(),
                "Log" => a.iter().map(|&z| ln(z)).collect(),
                "Sign" => a.iter().map(|z| z.signum()).collect(),
                "LpNormalization" => {
                    let length = a.iter().map(|z| z * z).sum::<f64>().sqrt();
                    a.iter().map(|z| z / length).collect()
                }
                "IsNaN" => a.iter().map(|z| f64::from(z.is_nan())).collect(),
                "Where" => {
                    let c = &values[&inputs[2]];
                    (0..a.len()).map(|at| if a[at] > 0.0 { b[at] } else { c[at] }).collect()
                }
                "Tanh" => a.iter().map(|&z| tanh(z)).collect(),
                "Relu" => a.iter().map(|&z| z.max(0.0)).collect(),
                "Softmax" => {
                    let sum: f64 = a.iter().map(|&z| exp(z)).sum();
                    a.iter().map(|&z| exp(z) / sum).collect()
                }
                "ArgMax" => continue,
                other => panic!("{other}"),
            };
            values.insert(out, result);
        }
        values.remove("probabilities").or_else(|| values.remove("numbers")).unwrap()
    }

    #[test]
    fn the_operators_say_what_the_model_says() {
        let cases = [
            ("representation", "hidden = [3]", (3, 0), 15, 12),
            ("representation", "hidden = [3, 2]\nactivation = 'tanh'\nbias = false", (2, 0), 18, 6),
            ("representation", "hidden = [3]\nactivation = 'relu'", (3, 0), 15, 12),
            ("hyperparameter", "", (2, 0), 4, 4),
            ("hyperparameter", "", (3, 0), 4, 12),
            ("meta-learning", "", (3, 0), 15, 15),
            ("hyperparameter", "", (0, 1), 4, 4),
            ("representation", "hidden = [3]\nloss = 'huber'", (0, 2), 15, 8),
        ];
        let names = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
        for (problem, params, (classes, outputs), n, p) in cases {
            let number = |at: usize| ((at * 7 + 3) % 11) as f64 / 8.0 - 0.6;
            let model = Model {
                about: About {
                    algorithm: "lopa-gt".into(),
                    seed: 1,
                    problem: problem.into(),
                    params: toml::from_str(params).unwrap(),
                    features: 4,
                    classes: names(classes),
                    outputs: names(outputs),
                    survival: false,
                    columns: None,
                    unnamed: Default::default(),
                    diverged: false,
                    log: true,
                    row: true,
                    privacy: None,
                    fills: true,
                    nodes: Vec::new(),
                    groups: Default::default(),
                    chapters: Vec::new(),
                },
                x: vec![(0..n).map(number).collect()],
                theta: vec![(0..p).map(|at| number(at + 5)).collect()],
                scaling: Scalings::all(Scaling {
                    shift: vec![1.0, 2.0, 0.5, 0.25],
                    factor: vec![2.0, 0.5, 1.0, 4.0],
                    log: true,
                    row: true,
                    fill: vec![0.5, -1.0, 2.0, 0.0],
                    target: lopa::data::TargetScaling {
                        shift: vec![30.0, -2.0][..outputs].to_vec(),
                        factor: vec![0.125, 4.0][..outputs].to_vec(),
                    },
                }),
            };
            let file = onnx(&model, 0, &problems()).unwrap();
            let row = [1.5, f64::NAN, 0.25, 0.5];
            let raw = Features::Dense { cols: 4, values: row.to_vec() };
            let expected = model.predictions(0, &raw, &problems()).unwrap();
            let found = run(&file, &row);
            assert_eq!(found.len(), classes + outputs);
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() < 2e-6 * expected.abs().max(1.0),
                    "{problem}: {found} and {expected}"
                );
            }
            let key = if outputs > 0 { "outputs" } else { "classes" };
            assert_eq!(texts(all(&file, 14)[0], 1), [key]);
        }
    }
}
