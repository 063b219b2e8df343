//! From YAML text to a [`Node`] tree: anchors and aliases resolved, `<<` merged, `${VAR}` replaced, duplicate keys
//! found, and everything bounded, so that no file can eat the machine.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::env::{self, Expanded};
use super::fault::{Place, Sink};
use super::hidden::Hidden;
use super::node::{Entry, MERGE, Meaning, Node, Scalar, Value};

/// Deeper than any configuration, shallow enough for every stack.
const DEEPEST: usize = 64;

/// What all nodes may weigh together: a few aliases of aliases would otherwise expand to billions of nodes.
const HEAVIEST: usize = 32 << 20;

/// What a node weighs beside its text.
const NODE_WEIGHT: usize = 100;

/// Reads one document. None where faults left nothing to go on with.
pub(crate) fn read(text: &str, sink: &Sink, variable: &dyn Fn(&str) -> Option<String>) -> Option<Node> {
    let mut tree = Tree { sink, variable, text, frames: vec![], anchors: HashMap::new(), weight: 0, root: None };
    let mut parser = Parser::new_from_str(text);
    let mut documents = 0;
    while let Some(next) = parser.next_event() {
        let (event, span) = match next {
            Ok(next) => next,
            Err(error) => {
                tree.syntax(&error);
                return None;
            }
        };
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                let help = "keep one document in the file, without `---` between";
                sink.add_with_help(place(span), "", "a second YAML document begins here", help);
                return None;
            }
        }
        tree.event(event, span)?;
    }
    tree.root
}

fn place(span: Span) -> Place {
    Place { line: span.start.line(), column: span.start.col() + 1 }
}

struct Tree<'a> {
    sink: &'a Sink,
    variable: &'a dyn Fn(&str) -> Option<String>,
    text: &'a str,
    frames: Vec<Frame>,
    /// Finished anchored nodes with their weights.
    anchors: HashMap<usize, (Node, usize)>,
    weight: usize,
    root: Option<Node>,
}

/// A collection that is not finished yet.
struct Frame {
    at: Place,
    anchor: usize,
    /// Weight of the whole tree when this began.
    weight: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map(MapItems),
}

#[derive(Default)]
struct MapItems {
    entries: Vec<Entry>,
    places: HashMap<String, Place>,
    /// A key whose value comes next; `None` inside for a key that was refused.
    key: Option<(Option<String>, Place)>,
    merges: Vec<Node>,
}

impl Tree<'_> {
    /// Takes one event; none where reading cannot go on.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let at = place(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let node = if self.key_is_next() {
                    if let Some(tag) = tag.as_deref().filter(|tag| core(tag) != Some("str")) {
                        self.sink.add(at, &self.path(), unknown(tag));
                    }
                    Node {
                        at,
                        value: Value::Scalar(Scalar {
                            text: text.into_owned(),
                            meaning: Meaning::Text,
                            from_environment: false,
                            hidden: Hidden::default(),
                        }),
                    }
                } else {
                    self.scalar(&text, style, tag.as_deref(), at)
                };
                let weight = NODE_WEIGHT + scalar_bytes(&node);
                self.weigh(weight, at)?;
                self.finish(node, anchor, weight);
            }
            Event::SequenceStart(anchor, tag) => self.open(at, anchor, tag.as_deref(), Items::List(vec![]))?,
            Event::MappingStart(anchor, tag) => {
                self.open(at, anchor, tag.as_deref(), Items::Map(MapItems::default()))?
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let frame = self.frames.pop()?;
                let path = self.path();
                let value = match frame.items {
                    Items::List(list) => Value::List(list),
                    Items::Map(map) => Value::Map(self.merged(map, &path)),
                };
                let weight = self.weight - frame.weight;
                self.finish(Node { at: frame.at, value }, frame.anchor, weight);
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some((node, weight)) => {
                    self.weigh(weight, at)?;
                    self.finish(node, 0, weight);
                }
                None => {
                    self.sink.add(at, &self.path(), "the alias refers to a value that contains it");
                    self.finish(Node { at, value: Value::Faulty }, 0, 0);
                }
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {}
        }
        Some(())
    }

    fn open(&mut self, at: Place, anchor: usize, tag: Option<&Tag>, items: Items) -> Option<()> {
        let kind = match &items {
            Items::List(_) => "seq",
            Items::Map(_) => "map",
        };
        if let Some(tag) = tag.filter(|tag| core(tag) != Some(kind)) {
            self.sink.add(at, &self.path(), unknown(tag));
        }
        if self.frames.len() >= DEEPEST {
            self.sink.add(at, "", format!("nested deeper than {DEEPEST} levels"));
            return None;
        }
        let weight = self.weight;
        self.weigh(NODE_WEIGHT, at)?;
        self.frames.push(Frame { at, anchor, weight, items });
        Some(())
    }

    fn weigh(&mut self, weight: usize, at: Place) -> Option<()> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > HEAVIEST {
            let help = "use fewer or smaller aliases";
            self.sink.add_with_help(at, "", "with its aliases expanded the file is larger than 32 MiB", help);
            return None;
        }
        Some(())
    }

    fn key_is_next(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { items: Items::Map(MapItems { key: None, .. }), .. }))
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, node: Node, anchor: usize, weight: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        if self.key_is_next() {
            return self.key(node);
        }
        let place_of_key = match self.frames.last_mut().map(|f| &mut f.items) {
            None => {
                self.root = Some(node);
                return;
            }
            Some(Items::List(list)) => {
                list.push(node);
                return;
            }
            Some(Items::Map(map)) => map.key.take(),
        };
        let Some((Some(key), key_at)) = place_of_key else { return };
        let path = self.path();
        let Some(Items::Map(map)) = self.frames.last_mut().map(|f| &mut f.items) else { return };
        if let Some(first) = map.places.get(&key) {
            let message = format!("duplicate key {key:?}; it is already at line {}", first.line);
            self.sink.add(key_at, &path, message);
            return;
        }
        map.places.insert(key.clone(), key_at);
        if key == MERGE {
            match node.value {
                Value::List(list) => map.merges.extend(list),
                _ => map.merges.push(node),
            }
        } else {
            // A value that is not there is best shown at its key.
            let missing = matches!(&node.value, Value::Scalar(Scalar { meaning: Meaning::Missing, .. }));
            let value = if missing { Node { at: key_at, ..node } } else { node };
            map.entries.push(Entry { key, key_at, value });
        }
    }

    fn key(&mut self, node: Node) {
        let key = match node.value {
            Value::Scalar(scalar) if !scalar.text.is_empty() => Some(scalar.text),
            _ => {
                self.sink.add(node.at, &self.path(), "a key must be a word");
                None
            }
        };
        if let Some(Items::Map(map)) = self.frames.last_mut().map(|f| &mut f.items) {
            map.key = Some((key, node.at));
        }
    }

    /// The map with what `<<` brings: keys written in the map itself win, then those of earlier merged maps.
    fn merged(&self, map: MapItems, path: &str) -> Vec<Entry> {
        let MapItems { mut entries, mut places, merges, .. } = map;
        let mut incomplete = None;
        for merge in merges {
            match merge.value {
                Value::Map(others) => {
                    for other in others {
                        if other.key == MERGE {
                            incomplete = Some(merge.at);
                        } else if !places.contains_key(&other.key) {
                            places.insert(other.key.clone(), other.key_at);
                            entries.push(other);
                        }
                    }
                }
                Value::Faulty => incomplete = Some(merge.at),
                _ => {
                    let found = merge.found();
                    self.sink.add(merge.at, path, format!("`<<` merges maps, found {found}"));
                    incomplete = Some(merge.at);
                }
            }
        }
        entries.extend(incomplete.map(|at| Entry {
            key: MERGE.into(),
            key_at: at,
            value: Node { at, value: Value::Faulty },
        }));
        entries
    }

    fn scalar(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Place) -> Node {
        let refused = |name: &str| self.sink.confines().and_then(|confines| confines.refuses_variable(name));
        let expanded = env::expand_within(text, self.variable, &refused);
        let Expanded { text, referred: from_environment, hidden } = match expanded {
            Ok(expanded) => expanded,
            Err((message, help)) => {
                self.sink.push(at, &self.path(), message, help);
                return Node { at, value: Value::Faulty };
            }
        };
        let plain = style == ScalarStyle::Plain;
        let mut meaning = if plain { Meaning::of_plain(&text) } else { Meaning::Text };
        if from_environment && meaning == Meaning::Missing {
            meaning = Meaning::Text;
        }
        let tagged = match tag.map(|tag| (tag, core(tag))) {
            None => Ok(meaning),
            Some((_, Some("str"))) => Ok(Meaning::Text),
            Some((tag, kind)) => match (kind, Meaning::of_plain(&text)) {
                (Some("int"), it @ Meaning::Int(_)) | (Some("bool"), it @ Meaning::Bool(_)) => Ok(it),
                (Some("float"), it @ (Meaning::Int(_) | Meaning::Float(_))) => Ok(it),
                (Some("null"), it @ (Meaning::Missing | Meaning::Null)) => Ok(it),
                (Some("int" | "bool" | "float" | "null"), _) => {
                    Err(format!("what follows is no {}: leave the tag out", shown(tag)))
                }
                _ => Err(unknown(tag)),
            },
        };
        meaning = match tagged {
            Ok(meaning) => meaning,
            Err(message) => {
                self.sink.add(at, &self.path(), message);
                return Node { at, value: Value::Faulty };
            }
        };
        Node { at, value: Value::Scalar(Scalar { text, meaning, from_environment, hidden }) }
    }

    /// The key that is being read, with dots.
    fn path(&self) -> String {
        let mut path = String::new();
        for frame in &self.frames {
            match &frame.items {
                Items::Map(MapItems { key: Some((Some(key), _)), .. }) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Items::Map(_) => {}
                Items::List(list) => path.push_str(&format!("[{}]", list.len())),
            }
        }
        path
    }

    fn syntax(&self, error: &ScanError) {
        let mark = error.marker();
        let at = Place { line: mark.line(), column: mark.col() + 1 };
        let around = |line: usize| self.text.lines().nth(line.wrapping_sub(1)).unwrap_or("");
        let (here, before) = (around(at.line), around(at.line.wrapping_sub(1)));
        let indentation = |line: &str| line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t');
        if let Some(line) = [(here, at.line), (before, at.line.wrapping_sub(1))].iter().find(|(l, _)| indentation(l)) {
            let column = line.0.chars().take_while(|c| *c != '\t').count() + 1;
            let at = Place { line: line.1, column };
            return self.sink.add_with_help(at, "", "a tab in the indentation", "YAML wants blanks there");
        }
        let help = if here.contains("${") || before.contains("${") {
            Some("inside { } and [ ], quote references: \"${NAME}\"".into())
        } else {
            None
        };
        self.sink.push(at, "", format!("not YAML: {}", error.info()), help);
    }
}

/// What a tag of the core schema (YAML 1.2.2, section 10.3) is called: `str`.
fn core(tag: &Tag) -> Option<&str> {
    tag.is_yaml_core_schema().then_some(tag.suffix.as_str())
}

fn shown(tag: &Tag) -> String {
    core(tag).map_or_else(|| tag.to_string(), |suffix| format!("!!{suffix}"))
}

fn unknown(tag: &Tag) -> String {
    format!("the tag {} is not known: leave it out", shown(tag))
}

fn scalar_bytes(node: &Node) -> usize {
    match &node.value {
        Value::Scalar(scalar) => scalar.text.len() + scalar.hidden.bytes(),
        _ => 0,
    }
}
