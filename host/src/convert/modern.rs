//! Reads the YAML format: `service`, `env`, `includes`, and a `pipeline` of inputs, filters and outputs
//! (<https://docs.fluentbit.io/manual/administration/configuring-fluent-bit/yaml>).

use std::path::Path;

use super::ConvertError;
use super::block::{Block, DEEPEST, Given, Kind, with_defaults};
use crate::config::{Entry, Faults, Node, NodeValue, Sink, read_yaml, text_of};

/// The sections of a file and of all that it includes.
pub(super) fn read(path: &Path) -> Result<Vec<Block>, ConvertError> {
    let mut blocks = vec![];
    let mut env = vec![];
    file(path, None, 0, &mut blocks, &mut env)?;
    Ok(with_defaults(blocks, &env))
}

fn file(
    path: &Path,
    included_at: Option<&str>,
    depth: usize,
    blocks: &mut Vec<Block>,
    env: &mut Vec<(String, String)>,
) -> Result<(), ConvertError> {
    crate::regular_file::open(path).map_err(|cause| ConvertError::read(path, included_at, cause))?;
    let text = text_of(path).map_err(|fault| ConvertError::Yaml(Faults::one(fault)))?;
    let sink = Sink::new(&path.display().to_string());
    // References stay what they are: Wharf reads them the same way.
    let root = read_yaml(&text, &sink, &|name| Some(format!("${{{name}}}")));
    if let Some(faults) = Faults::of(sink.into_vec()) {
        return Err(ConvertError::Yaml(faults));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let place = |node: &Node| format!("{name}:{}", node.at.line);
    for entry in root.as_ref().map(entries).unwrap_or_default() {
        match entry.key.as_str() {
            "env" => env.extend(entries(&entry.value).iter().map(|one| (one.key.clone(), flat(&one.value)))),
            "includes" => {
                for item in items(&entry.value) {
                    if depth >= DEEPEST {
                        let (path, line) = (path.to_owned(), item.at.line);
                        return Err(ConvertError::Depth { path, line, most: DEEPEST });
                    }
                    let place = format!("{}:{}", path.display(), item.at.line);
                    let included = path.parent().unwrap_or(Path::new("")).join(flat(item));
                    file(&included, Some(&place), depth + 1, blocks, env)?;
                }
            }
            "service" => {
                blocks.push(Block::new(Kind::Service, "service", place(&entry.value), options(&entry.value, &place)))
            }
            "pipeline" => {
                for part in entries(&entry.value) {
                    let kind = match part.key.as_str() {
                        "inputs" => Kind::Input,
                        "filters" => Kind::Filter,
                        "outputs" => Kind::Output,
                        _ => Kind::Other,
                    };
                    // One alone may stand without a list.
                    let all = match &part.value.value {
                        NodeValue::Map(_) => std::slice::from_ref(&part.value),
                        _ => items(&part.value),
                    };
                    for item in all {
                        blocks.push(Block::new(kind, &part.key, place(item), options(item, &place)));
                    }
                }
            }
            other => {
                let all = items(&entry.value);
                let all = if all.is_empty() { std::slice::from_ref(&entry.value) } else { all };
                blocks
                    .extend(all.iter().map(|item| Block::new(Kind::Other, other, place(item), options(item, &place))));
            }
        }
    }
    Ok(())
}

fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        NodeValue::Map(entries) => entries,
        _ => &[],
    }
}

fn items(node: &Node) -> &[Node] {
    match &node.value {
        NodeValue::List(items) => items,
        _ => &[],
    }
}

/// A list that an option holds is the option several times.
fn options(node: &Node, place: &dyn Fn(&Node) -> String) -> Vec<Given> {
    let mut options = vec![];
    for entry in entries(node) {
        match &entry.value.value {
            NodeValue::List(list) if list.iter().all(|item| matches!(item.value, NodeValue::Scalar(_))) => {
                options.extend(list.iter().map(|item| Given::new(entry.key.clone(), flat(item), place(item))));
            }
            _ => options.push(Given::new(entry.key.clone(), flat(&entry.value), place(&entry.value))),
        }
    }
    options
}

/// A value on one line; what is no scalar is only named.
fn flat(node: &Node) -> String {
    match &node.value {
        NodeValue::Scalar(scalar) => scalar.text.clone(),
        NodeValue::List(_) => "a list".into(),
        NodeValue::Map(_) => "a map".into(),
        NodeValue::Faulty => String::new(),
    }
}
