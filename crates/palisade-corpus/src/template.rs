//! Filling in templates.

use crate::Fences;

/// Replaces each `$NAME` by its value, and each line `@fence` by a fence or nothing.
pub(crate) fn fill(template: &str, fences: Fences, values: &[(&str, String)]) -> String {
    let mut text = String::with_capacity(template.len());
    for line in template.trim_start_matches('\n').lines() {
        let code = line.trim_start();
        if code != "@fence" {
            text.push_str(line);
        } else if fences == Fences::Tso {
            text.push_str(&line[..line.len() - code.len()]);
            text.push_str("fence;");
        } else {
            continue;
        }
        text.push('\n');
    }
    for (name, value) in values {
        text = text.replace(&format!("${name}"), value);
    }
    text
}

/// "without fences" or "with fences for TSO", for the comment at the top.
pub(crate) fn describe(fences: Fences) -> String {
    match fences {
        Fences::None => "without fences".to_owned(),
        Fences::Tso => "with fences for TSO".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled() {
        let template = "\nconst N = $N;\n    x = 1;\n    @fence\n";
        let check = |fences, expected| assert_eq!(fill(template, fences, &[("N", "3".to_owned())]), expected);
        check(Fences::None, "const N = 3;\n    x = 1;\n");
        check(Fences::Tso, "const N = 3;\n    x = 1;\n    fence;\n");
    }
}
