//! What can be fetched: the page, its style and scripts, and the corpus as examples. All of it is built in.

use crate::examples::examples;
use crate::http::Response;
use palisade::report::html;
use palisade::{Language, Model, engines};
use serde_json::{Value, json};

const INDEX: &str = include_str!("assets/index.html");
const STYLE: &str = include_str!("assets/playground.css");

/// The scripts of the page, in the order in which they run.
const SCRIPTS: [(&str, &str); 7] = [
    ("/editor.js", include_str!("assets/editor.js")),
    ("/problems.js", include_str!("assets/problems.js")),
    ("/examples.js", include_str!("assets/examples.js")),
    ("/link.js", include_str!("assets/link.js")),
    ("/server.js", include_str!("assets/server.js")),
    ("/walk.js", include_str!("assets/walk.js")),
    ("/playground.js", include_str!("assets/playground.js")),
];

/// The page at a path, of a server that reads C or does not.
pub(crate) fn page(path: &str, version: &str, c: bool) -> Option<Response> {
    let css = "text/css; charset=utf-8";
    let js = "text/javascript; charset=utf-8";
    let response = match path {
        "/" => {
            let text = INDEX.replace("{{logo}}", html::LOGO).replace("{{version}}", version);
            Response::new("text/html; charset=utf-8", text)
        }
        "/report.css" => Response::new(css, html::STYLE),
        "/playground.css" => Response::new(css, STYLE),
        "/report.js" => Response::new(js, html::SCRIPT),
        "/examples.json" => Response::new("application/json", menus(c).to_string()),
        _ => Response::new(js, SCRIPTS.iter().find(|(name, _)| *name == path)?.1),
    };
    Some(response)
}

/// The example programs, and the values for the page's menus.
fn menus(c: bool) -> Value {
    let languages = Language::ALL.into_iter().map(Language::name).chain(c.then_some("c"));
    json!({
        "examples": examples(c),
        "languages": languages.collect::<Vec<_>>(),
        "models": Model::ALL.map(Model::name),
        "engines": std::iter::once("auto").chain(engines().iter().map(|engine| engine.name())).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_link_only_to_pages() {
        for (text, mark) in [(INDEX, "src=\""), (INDEX, "href=\"/")] {
            for rest in text.split(mark).skip(1) {
                let path = rest.split('"').next().expect("an attribute ends");
                let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
                assert!(page(&path, "", false).is_some(), "{path}");
            }
        }
        assert!(page("/../Cargo.toml", "", false).is_none());
        let order: Vec<usize> =
            SCRIPTS.iter().map(|(path, _)| INDEX.find(path).expect("it is used")).collect();
        assert!(order.is_sorted(), "the page runs its scripts in this order");
    }
}
