//! The bundled heart data of four hospitals, with the values that they lack.
//!
//! A. Janosi, W. Steinbrunn, M. Pfisterer and R. Detrano, *Heart Disease*, UCI Machine Learning
//! Repository, 1988, doi:10.24432/C52P4X, CC BY 4.0: the four processed files, 920 rows of 13 columns.

use super::Where;
use super::raw::{Class, Part, Raw, Table, Usual};
use crate::config::NoParams;
use crate::encoding::{self, Cell, Encoded};
use crate::error::{Error, Result};
use crate::{Columns, Features, Method, Unnamed};

const HOSPITALS: [(&str, &str); 4] = [
    ("cleveland", include_str!("../../assets/heart/processed.cleveland.data")),
    ("hungary", include_str!("../../assets/heart/processed.hungarian.data")),
    ("switzerland", include_str!("../../assets/heart/processed.switzerland.data")),
    ("long-beach", include_str!("../../assets/heart/processed.va.data")),
];

/// The columns, and the categories of those that have some.
const COLUMNS: [(&str, &[&str]); 13] = [
    ("age", &[]),
    ("sex", &[]),
    ("cp", &["1", "2", "3", "4"]),
    ("trestbps", &[]),
    ("chol", &[]),
    ("fbs", &[]),
    ("restecg", &["0", "1", "2"]),
    ("thalach", &[]),
    ("exang", &[]),
    ("oldpeak", &[]),
    ("slope", &[]),
    ("ca", &[]),
    ("thal", &["3", "6", "7"]),
];

const CLASSES: [&str; 2] = ["healthy", "ill"];

pub fn read(_: &NoParams, _: &Where) -> Result<Raw> {
    let encoded = |(column, categories): (&str, &[&str])| Encoded {
        categories: categories.iter().map(ToString::to_string).collect(),
        ..Encoded::number(column.to_string())
    };
    let encoding: Vec<Encoded> = COLUMNS.map(encoded).to_vec();
    let cols = encoding::width(&encoding);
    let (mut values, mut labels, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    let mut missing = 0;
    for (group, (hospital, text)) in (0..).zip(HOSPITALS) {
        for (line, row) in text.lines().enumerate() {
            let place = || format!("{hospital}, row {}", line + 1);
            let wrong = |cell: &str| {
                Error::data("data/bad-number", format!("`{cell}` is no value")).at(place())
            };
            let (row, label) = row.rsplit_once(',').ok_or_else(|| wrong(row))?;
            let mut start = values.len();
            values.resize(start + cols, 0.0);
            for (cell, encoded) in row.split(',').zip(&encoding) {
                let out = &mut values[start..start + encoded.width()];
                match encoded.write(cell, out) {
                    Cell::Value => {}
                    Cell::Missing => missing += 1,
                    Cell::Odd => return Err(wrong(cell)),
                }
                start += encoded.width();
            }
            // The files grade the disease from 0, none, to 4.
            let grade: u32 = label.parse().map_err(|_| wrong(label))?;
            labels.push(u32::from(grade > 0));
            groups.push(group);
        }
    }
    let table = Table::Numbers(Features::Dense { cols, values });
    let class = |name: &str| Class { code: name.to_string(), name: name.to_string() };
    let message = format!("{missing} cells have no value");
    let refusal = Error::data("data/bad-number", message)
        .at("heart")
        .hint("write `missing = \"mean\"` in [data] to fill in the mean of each column");
    let none = Raw::new(Features::Dense { cols: 1, values: Vec::new() }, Vec::new(), &[]);
    Ok(Raw {
        train: Part { table, labels, groups },
        classes: CLASSES.map(class).to_vec(),
        groups: HOSPITALS.map(|(name, _)| name.to_string()).to_vec(),
        usual: Usual { method: Method::Standardise, maximum: None, columns: None },
        columns: Some(Columns {
            features: encoding.iter().flat_map(Encoded::names).collect(),
            label: Some("num".into()),
            group: Some("hospital".into()),
            ..Columns::default()
        }),
        unnamed: Unnamed { encoding, ..Unnamed::default() },
        missing: Some(refusal),
        ..none
    })
}
