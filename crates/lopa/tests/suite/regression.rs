//! Labels that are numbers to predict: read, scaled, agreed on, kept with a model.

use lopa::config::Source;
use lopa::data::{
    Data, Features, Scaling, Scalings, Target, TargetScaling, Targets, Where, each_own, load_own,
    read, sources,
};
use lopa::error::Result;
use lopa::folder::model::Model;
use lopa::problem::builtin::problems;
use serde_json::json;

use crate::files::load_files;

const HOUSES: &str = "rooms,area,price,rent\n1,30,90.5,7\n2,55,160,11\n3,70,210.25,15\n2,48,150,10\n\
                      4,95,300,21\n1,25,80,6\n3,80,240,16\n5,120,400,30\n2,60,175,12\n3,66,205,14\n";

fn houses(more: &str) -> Result<Data> {
    let section = format!("name = 'csv'\npath = 'a.csv'\n{more}");
    load_files(&section, &[("a.csv", HOUSES.as_bytes().to_vec())])
}

#[test]
fn numbers_are_scaled_by_training_rows_and_scaled_back() {
    let data = houses("label = 'price'\ntarget = 'number'\ntest = 0.2").unwrap();
    assert_eq!((data.target(), &data.classes[..]), (Target::Numbers(1), &[][..]));
    assert_eq!(data.outputs, ["price"]);
    assert_eq!((data.train.len(), data.test.len(), data.train.cols()), (8, 2, 3));
    let targets = data.train.targets().unwrap();
    let mean = targets.values.iter().sum::<f64>() / 8.0;
    let square = targets.values.iter().map(|t| t * t).sum::<f64>() / 8.0;
    assert!(mean.abs() < 1e-14 && (square - 1.0).abs() < 1e-14);
    let mut back = [targets.values.clone(), data.test.targets().unwrap().values.clone()].concat();
    data.scaling.of(0).target.undo(&mut back);
    back.sort_by(f64::total_cmp);
    let prices = [80.0, 90.5, 150.0, 160.0, 175.0, 205.0, 210.25, 240.0, 300.0, 400.0];
    assert!(back.iter().zip(prices).all(|(a, b)| (a - b).abs() < 1e-12), "{back:?}");
}

#[test]
fn several_columns_are_several_numbers() {
    let data = houses("label = ['rent', 'price']\ntarget = 'number'\ntest = 0").unwrap();
    assert_eq!(data.outputs, ["rent", "price"]);
    assert_eq!(data.columns.as_ref().unwrap().features, ["rooms", "area"]);
    let mut first = data.train.targets().unwrap().row(0).to_vec();
    data.scaling.of(0).target.undo(&mut first);
    assert!((first[0] - 7.0).abs() < 1e-12 && (first[1] - 90.5).abs() < 1e-12, "{first:?}");
    let refused = houses("label = ['rent', 'price']").unwrap_err();
    assert_eq!(refused.id, "data/many-labels");
}

#[test]
fn labels_that_are_not_numbers_are_refused() {
    let words = "a,y\n1,2.5\n2,high\n3,4\n";
    let section = "name = 'csv'\npath = 'a.csv'\ntarget = 'number'";
    let error = load_files(section, &[("a.csv", words.as_bytes().to_vec())]).unwrap_err();
    assert_eq!(error.id, "data/bad-label");
    assert!(error.message.contains("high"), "{}", error.message);
    let error = houses("label = 'price'\ntarget = 'number'\nclasses = [1, 2]").unwrap_err();
    assert_eq!(error.id, "config/out-of-range");
    let error = houses("label = 'price'").unwrap_err();
    assert!(error.hint.unwrap().contains("target = \"number\""));
}

/// A label with a tab in it would be two numbers, and shift the targets of all later rows.
#[test]
fn a_label_is_as_many_numbers_as_there_are_columns_of_them() {
    let text = "a,y\n1,2.5\n2,\"3\t4\"\n3,5\n";
    let section = "name = 'csv'\npath = 'a.csv'\ntarget = 'number'\ntest = 0";
    let error = load_files(section, &[("a.csv", text.as_bytes().to_vec())]).unwrap_err();
    assert_eq!(error.id, "data/bad-label");
    assert!(error.message.contains("is 2 numbers"), "{}", error.message);
    let labels = ["1.5".to_string(), "3\t4".to_string()];
    let answers = lopa::folder::serve::Answers::new(&labels, &[], Target::Numbers(1)).unwrap_err();
    assert_eq!(answers.id, "data/bad-label");
}

/// Numbers of three nodes; the moments of all rows are not those of any node.
fn own(more: &str) -> Result<Data> {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("a", "s,y\n1,10\n2,12\n3,15\n4,16\n"),
        ("b", "s,y\n1,100\n2,130\n4,150\n"),
        ("c", "y,s\n-5,3\n-7,1\n-6,2\n-9,0\n-8,5\n"),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(format!("{name}.csv")), text).unwrap();
    }
    let section = format!(
        "name = 'csv'\npath = '{{node}}.csv'\nnodes = ['a', 'b', 'c']\nlabel = 'y'\ntest = 0\n\
         target = 'number'\nscaling = 'standardise'\n{more}"
    );
    let source = Source::new("e.toml", &section);
    let (choice, preparation) = read(source.root()?, &sources())?;
    let names = preparation.nodes.clone().unwrap();
    let each = each_own(&choice, &names, &sources())?;
    load_own(&each, &preparation, &names, 0..3, &Where::new(Some(folder.path()), 0))
}

#[test]
fn nodes_scale_numbers_by_their_own_moments_unless_they_agree() {
    let (alone, agreed) = (own("").unwrap(), own("moments = 'agreed'").unwrap());
    assert_eq!((alone.scaling.as_slice().len(), agreed.scaling.as_slice().len()), (3, 1));
    let first = &alone.scaling.of(1).target;
    assert!((first.shift[0] - 380.0 / 3.0).abs() < 1e-12, "{first:?}");
    let all = [10.0, 12.0, 15.0, 16.0, 100.0, 130.0, 150.0, -5.0, -7.0, -6.0, -9.0, -8.0];
    let whole = TargetScaling::of(&Targets { outputs: 1, values: all.to_vec() });
    let common = &agreed.scaling.of(2).target;
    assert!((common.shift[0] - whole.shift[0]).abs() < 1e-12);
    assert!((common.factor[0] - whole.factor[0]).abs() < 1e-14);
    let mut back = agreed.train.targets().unwrap().values.clone();
    common.undo(&mut back);
    assert!(back.iter().zip(all).all(|(a, b)| (a - b).abs() < 1e-11), "{back:?}");
}

#[test]
fn a_model_keeps_the_units_of_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let about = json!({
        "algorithm": "lopa-gt", "seed": 1, "problem": "hyperparameter", "params": {},
        "features": 2, "classes": [], "outputs": ["rent", "price"],
    });
    let scaling = |shift: f64| Scaling {
        target: TargetScaling { shift: vec![shift, 2.0], factor: vec![0.1, 4.0] },
        ..Scaling::default()
    };
    let model = Model {
        about: serde_json::from_value(about).unwrap(),
        x: vec![vec![0.0; 2]; 2],
        theta: vec![vec![1.0, 0.5, -1.0, 3.0]; 2],
        scaling: Scalings::each(vec![scaling(10.0), scaling(-20.0)]),
    };
    model.save(&path).unwrap();
    let found = Model::load(&path).unwrap();
    assert_eq!(found, model);
    let rows = Features::Dense { cols: 2, values: vec![2.0, 1.0] };
    // (2 · 1 − 1, 2 · 0.5 + 3) = (1, 4) in scaled numbers.
    let said = |node| found.predictions(node, &rows, &problems()).unwrap();
    assert!((said(0)[0] - 20.0).abs() < 1e-12 && (said(0)[1] - 3.0).abs() < 1e-12);
    assert!((said(1)[0] - -10.0).abs() < 1e-12);
    // Without their scaling, the numbers would mean nothing.
    let lost = Model { scaling: Scalings::default(), ..model };
    lost.save(&path).unwrap();
    assert_eq!(Model::load(&path).unwrap_err().id, "storage/model");
}
