//! What a report says about a scenario: its text, and the values of its parameters.

use std::path::Path;

use super::source::{Change, ScenarioError, Source};

/// A short name that a scenario declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The dotted path that it stands for.
    pub key: String,
    /// Its value with all changes, as TOML; `None`: the file leaves it out, so it has its default.
    pub value: Option<String>,
    /// Whether a change set it.
    pub changed: bool,
}

/// A scenario as a reader of its results wants to see it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    /// The file as it stands.
    pub text: String,
    /// What the file declares under `[parameters]`, and other keys that were changed.
    pub parameters: Vec<Parameter>,
}

impl Description {
    /// Reads a scenario once more; it should be one that was accepted.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub fn open(path: &Path, changes: &[Change]) -> Result<Description, ScenarioError> {
        let source = Source::open(path, changes)?;
        let file: toml::Value = source.read()?;
        let declared = file.get("parameters").and_then(toml::Value::as_table);
        let declared = declared.into_iter().flatten();
        let mut pairs: Vec<(String, String)> = declared
            .filter_map(|(name, key)| Some((name.clone(), key.as_str()?.to_owned())))
            .collect();
        for change in changes {
            if !pairs.iter().any(|(name, key)| [name, key].contains(&&change.key)) {
                pairs.push((String::new(), change.key.clone()));
            }
        }
        let parameter = |(name, key): (String, String)| Parameter {
            value: value(&file, &key),
            changed: changes.iter().any(|c| c.key == name || c.key == key),
            name,
            key,
        };
        Ok(Description {
            text: source.text().to_owned(),
            parameters: pairs.into_iter().map(parameter).collect(),
        })
    }
}

/// What stands at a dotted path, in which members of lists go by number or by name.
fn value(file: &toml::Value, key: &str) -> Option<String> {
    let mut at = file;
    for part in key.split('.') {
        at = match at {
            toml::Value::Array(list) => {
                let named = |v: &toml::Value| v.get("name").and_then(toml::Value::as_str) == Some(part);
                match part.parse::<usize>() {
                    Ok(index) => list.get(index)?,
                    Err(_) => list.iter().find(|v| named(v))?,
                }
            }
            other => other.get(part)?,
        };
    }
    Some(match at {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_their_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        let text = "[parameters]\nnodes = \"group.cell.count\"\nrts = \"group.cell.rts_octets\"\n\
                    [run]\nduration = \"1s\"\n[[group]]\nname = \"cell\"\ncount = 3\nprotocol = \"sink\"\n";
        std::fs::write(&path, text).unwrap();
        let changes = ["nodes=5", "run.duration=2s"].map(|c| Change::parse(c).unwrap());
        let d = Description::open(&path, &changes).unwrap();
        assert_eq!(d.text, text);
        let parameters: Vec<_> = (d.parameters.iter())
            .map(|p| (p.name.as_str(), p.key.as_str(), p.value.as_deref(), p.changed))
            .collect();
        assert_eq!(
            parameters,
            [
                ("nodes", "group.cell.count", Some("5"), true),
                ("rts", "group.cell.rts_octets", None, false),
                ("", "run.duration", Some("2s"), true),
            ]
        );
    }
}
