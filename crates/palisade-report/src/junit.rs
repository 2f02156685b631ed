//! JUnit XML, which continuous integration shows as a table of tests. There is one test per file.

use std::fmt::Write;

/// The result for one file.
#[derive(Clone, PartialEq, Debug)]
pub struct TestCase {
    /// The file.
    pub name: String,
    /// The memory model, which is used as the class.
    pub class: String,
    /// Time taken.
    pub seconds: f64,
    /// The result.
    pub result: TestResult,
}

/// The result of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TestResult {
    /// As expected.
    Passed,
    /// Not as expected: the reason in one line, and the details.
    Failed(String, String),
    /// Not known, and the reason.
    Skipped(String),
    /// The test could not be run: the reason in one line, and the details.
    Error(String, String),
}

/// All tests as a file.
pub fn junit(suite: &str, cases: &[TestCase], seconds: f64) -> String {
    let count =
        |matching: fn(&TestResult) -> bool| cases.iter().filter(|case| matching(&case.result)).count();
    let failures = count(|result| matches!(result, TestResult::Failed(..)));
    let errors = count(|result| matches!(result, TestResult::Error(..)));
    let skipped = count(|result| matches!(result, TestResult::Skipped(_)));
    let totals = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{seconds:.3}\"",
        cases.len()
    );
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut line = |text: std::fmt::Arguments<'_>| writeln!(xml, "{text}").expect("writing to a string");
    line(format_args!("<testsuites {totals}>"));
    line(format_args!("  <testsuite name=\"{}\" {totals}>", escaped(suite)));
    for case in cases {
        let open = format!(
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escaped(&case.class),
            escaped(&crate::visible(&case.name)),
            case.seconds
        );
        let (tag, message, story) = match &case.result {
            TestResult::Passed => {
                line(format_args!("{open}/>"));
                continue;
            }
            TestResult::Failed(message, story) => ("failure", message, story.as_str()),
            TestResult::Skipped(message) => ("skipped", message, ""),
            TestResult::Error(message, story) => ("error", message, story.as_str()),
        };
        line(format_args!("{open}>"));
        line(format_args!("      <{tag} message=\"{}\">{}</{tag}>", escaped(message), escaped(story)));
        line(format_args!("    </testcase>"));
    }
    line(format_args!("  </testsuite>"));
    line(format_args!("</testsuites>"));
    xml
}

/// Escapes text for XML. Characters that XML 1.0 does not allow at all become the replacement character.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each() {
        let case = |name: &str, result| TestCase {
            name: name.into(),
            class: "palisade.tso".into(),
            seconds: 0.5,
            result,
        };
        let cases = [
            case("a.pal", TestResult::Passed),
            case("b.pal", TestResult::Failed("x < 1 \"&\"".into(), "1\n2\u{1}".into())),
            case("c.pal", TestResult::Skipped("out of time".into())),
            case("d.pal", TestResult::Error("no such file".into(), "d.pal: no such file".into())),
        ];
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"2.000\">
  <testsuite name=\"palisade check\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"2.000\">
    <testcase classname=\"palisade.tso\" name=\"a.pal\" time=\"0.500\"/>
    <testcase classname=\"palisade.tso\" name=\"b.pal\" time=\"0.500\">
      <failure message=\"x &lt; 1 &quot;&amp;&quot;\">1&#10;2\u{fffd}</failure>
    </testcase>
    <testcase classname=\"palisade.tso\" name=\"c.pal\" time=\"0.500\">
      <skipped message=\"out of time\"></skipped>
    </testcase>
    <testcase classname=\"palisade.tso\" name=\"d.pal\" time=\"0.500\">
      <error message=\"no such file\">d.pal: no such file</error>
    </testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(junit("palisade check", &cases, 2.0), expected);
    }
}
