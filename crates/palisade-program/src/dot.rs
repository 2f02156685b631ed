//! Draws control flow in the DOT language of Graphviz.

use crate::describe;
use crate::running::{Code, CodeId, Location, System};
use palisade_base::{Id, limits};
use std::fmt::Write;

/// The control flow of every role and procedure. Each gets a cluster. Nodes are locations with their labels,
/// and edges show instructions. The same system always gives the same text.
pub fn control_flow(system: &System) -> String {
    let mut text = String::from("digraph program {\n  node [shape=circle, fontname=\"sans-serif\"];\n");
    text.push_str("  edge [fontname=\"monospace\"];\n");
    for (id, code) in system.codes.iter_enumerated() {
        cluster(&mut text, system, id, code);
    }
    text.push_str("}\n");
    text
}

fn cluster(text: &mut String, system: &System, id: CodeId, code: &Code) {
    let role = system.roles.iter().find(|role| role.code == id);
    let title = match role {
        Some(role) => format!("process {}", role.name),
        None => {
            let params: Vec<&str> = code
                .registers
                .iter()
                .skip(system.privates)
                .take(code.params)
                .map(|r| r.name.as_str())
                .collect();
            format!("procedure {}({})", code.name, params.join(", "))
        }
    };
    line(text, 2, &format!("subgraph cluster_{} {{", id.0));
    line(text, 4, &format!("label={};", quote(&title)));
    line(text, 4, &format!("{} [shape=point];", node(id, "start")));
    let mut labels: Vec<Vec<&str>> = vec![Vec::new(); code.location_count()];
    for (label, location) in &code.labels {
        labels[location.index()].push(label);
    }
    for (location, labels) in labels.iter().enumerate() {
        limits::checkpoint();
        let location = Location::from_index(location);
        let shape = match (location == code.exit, labels.is_empty()) {
            (true, _) => ", shape=doublecircle",
            (false, false) => ", shape=box",
            (false, true) => "",
        };
        let label = if labels.is_empty() { location.0.to_string() } else { labels.join(", ") };
        line(text, 4, &format!("{} [label={}{shape}];", node(id, location.0), quote(&label)));
    }
    line(text, 4, &format!("{} -> {};", node(id, "start"), node(id, code.entry.0)));
    for edge in code.edges() {
        limits::checkpoint();
        let (source, target) = (node(id, edge.source.0), node(id, edge.target.0));
        let label = quote(&describe::instruction(system, code, &edge.instr));
        line(text, 4, &format!("{source} -> {target} [label={label}];"));
    }
    line(text, 2, "}");
}

fn node(code: CodeId, location: impl std::fmt::Display) -> String {
    format!("c{}_{location}", code.0)
}

fn line(text: &mut String, indent: usize, content: &str) {
    let _ = writeln!(text, "{:indent$}{content}", "");
}

/// A DOT string: quotes and backslashes are escaped, control characters removed.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if c == '"' || c == '\\' {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}
