//! A table as a list of keys, written as for `--set`.

use toml::{Table, Value};

/// Every key of a table and its value as text: `run.iterations`, `algorithm.lopa-gt.alpha`. Tables in a
/// list go by their label or name; the list itself is a key whose value is their order.
pub fn flat(table: &Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    add_table("", table, &mut found);
    found
}

fn add_table(path: &str, table: &Table, found: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        add(path, value, found);
    }
}

fn add(path: String, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Table(table) => add_table(&path, table, found),
        Value::Array(list) if list.iter().any(Value::is_table) => {
            let names: Vec<String> = list.iter().enumerate().map(name).collect();
            for (name, value) in names.iter().zip(list) {
                add(format!("{path}.{name}"), value, found);
            }
            found.push((path, names.join(", ")));
        }
        value => found.push((path, value.to_string())),
    }
}

/// The name of an entry in a list of tables.
fn name((at, value): (usize, &Value)) -> String {
    let word = |key: &str| value.get(key).and_then(Value::as_str);
    word("label").or_else(|| word("name")).map_or_else(|| (at + 1).to_string(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_for_set() {
        let text = "a = 1\n[run]\nseeds = [1, 2]\n[[algorithm]]\nname = \"x\"\nalpha = 0.5\n\
                    [[algorithm]]\nname = \"x\"\nlabel = \"y\"\nbeta = { first = 2 }\n";
        let keys = flat(&text.parse().unwrap());
        let has = |key: &str, value: &str| keys.contains(&(key.into(), value.into()));
        assert!(has("a", "1") && has("run.seeds", "[1, 2]") && has("algorithm.x.alpha", "0.5"));
        assert!(has("algorithm.y.beta.first", "2") && has("algorithm", "x, y"), "{keys:?}");
    }
}
